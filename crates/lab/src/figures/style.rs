//! How figures look, in light and in dark.
//!
//! Colours are those of Okabe and Ito (Color Universal Design, 2008), which stay apart for colour-blind
//! readers; in the dark they are lighter. What a colour tells is told a second time by a dash, a shape or words.

/// Number of colours, dashes and shapes; a figure has no more series.
pub const SERIES_MAX: usize = 6;

/// The style sheet of all figures.
///
/// `lN` and `fN` are the N-th colour as line and as filling, `dN` the N-th dash.
pub const STYLE: &str = "\
.fig{font:15px 'DejaVu Sans',Verdana,Arial,sans-serif}\
.fig text{fill:#222}.fig text.inv{fill:#fff}.fig .small{font-size:13.5px}.fig .tiny{font-size:11px}\
.fig .bold{font-weight:bold}\
.paper{fill:#fff}.grid{stroke:#ddd;fill:none}.axis{stroke:#222;stroke-width:1.2;fill:none}\
.line{fill:none;stroke-width:2.2;stroke-linejoin:round}.thin{fill:none;stroke-width:1.2;stroke-linejoin:round}\
.band{fill-opacity:.14}.soft{fill-opacity:.35}\
.l0{stroke:#0072b2}.l1{stroke:#e69f00}.l2{stroke:#009e73}.l3{stroke:#d55e00}.l4{stroke:#cc79a7}.l5{stroke:#56b4e9}\
.f0{fill:#0072b2}.f1{fill:#e69f00}.f2{fill:#009e73}.f3{fill:#d55e00}.f4{fill:#cc79a7}.f5{fill:#56b4e9}\
.f6{fill:#999}.lx{stroke:#999}.none{fill:#fff;stroke:#888}.edge{stroke:#fff;stroke-width:1}\
.d1{stroke-dasharray:8 4}.d2{stroke-dasharray:2.5 3.5}.d3{stroke-dasharray:10 3 2.5 3}\
.d4{stroke-dasharray:5 2.5}.d5{stroke-dasharray:14 4}\
.link{fill:none}.fig text.node{fill:#000}\
.q0{stroke:#ccc;stroke-width:.8}.q1{stroke:#b0b0b0;stroke-width:1.1}.q2{stroke:#999;stroke-width:1.6}\
.q3{stroke:#777;stroke-width:2.2}\
.tree{stroke:#222;stroke-width:3.2;fill:none}\
.level{stroke:#222;stroke-width:1.8;fill:none}.across{stroke-dasharray:6 5}\
.fig text.halo{stroke:#fff;stroke-width:3px;paint-order:stroke}\
@media(prefers-color-scheme:dark){\
.fig text{fill:#e4e4e4}.fig text.inv{fill:#111}.paper{fill:#16181b}.grid{stroke:#383b40}.axis,.tree,.level{stroke:#e4e4e4}.fig text.halo{stroke:#16181b}\
.l0{stroke:#4da6e0}.l2{stroke:#2bc196}.l3{stroke:#f58a4b}.l4{stroke:#e09dc2}.l5{stroke:#a5d8f7}\
.f0{fill:#4da6e0}.f2{fill:#2bc196}.f3{fill:#f58a4b}.f4{fill:#e09dc2}.f5{fill:#a5d8f7}\
.q0{stroke:#2c2f34}.q1{stroke:#45494f}.q2{stroke:#666b73}.q3{stroke:#888e96}\
.none{fill:#16181b;stroke:#999}.edge{stroke:#16181b}}";

/// The classes of a line of the N-th series.
pub fn line(series: usize) -> String {
    let series = series % SERIES_MAX;
    format!("line l{series} d{series}")
}

/// The class of a filling of the N-th series.
pub fn fill(series: usize) -> String {
    format!("f{}", series % SERIES_MAX)
}
