//! One behaviour a test: where requests go, and what is listed.

use lowmesh_wire::coap::{Kind, MessageId};

use super::*;
use crate::resource::content_format;

fn request(method: Code, path: &str) -> Message {
    let mut message = Message::new(Kind::Confirmable, method, MessageId(1));
    message.options.insert_path(path);
    message
}

fn discover(router: &Router<u8>, query: &str) -> String {
    let mut get = request(Code::GET, "/.well-known/core");
    get.options.insert_query(query);
    let Route::Answer(response) = router.route(&get, false) else { panic!("the router answers") };
    assert_eq!(response.code, Code::CONTENT);
    assert_eq!(content_format(&response.options), Some(ContentFormat::LINK_FORMAT));
    String::from_utf8(response.payload).expect("text")
}

fn house() -> Router<u8> {
    let mut router = Router::new();
    router.insert("/", Resource::new(Methods::GET, 0).hidden());
    let temp = Resource::new(Methods::GET | Methods::PUT, 1).attribute("rt", "temperature-c");
    router.insert("/sensors/temp", temp.format(ContentFormat::TEXT_PLAIN).observable());
    let led = Resource::new(Methods::PUT, 2).attribute("rt", "light switch").multicast();
    router.insert("/led", led.consumes(ContentFormat::JSON));
    router.insert("/files", Resource::new(Methods::ALL, 3).subtree());
    router
}

/// The value of the resource that a request comes to, or the code of the router's answer.
fn outcome(router: &Router<u8>, message: &Message) -> Result<u8, Code> {
    match router.route(message, false) {
        Route::Resource { resource, .. } => Ok(*resource.value()),
        Route::Answer(response) => Err(response.code),
        Route::Ignore => panic!("not multicast"),
    }
}

#[test]
fn a_request_comes_to_the_resource_of_its_path() {
    let router = house();
    assert_eq!(outcome(&router, &request(Code::GET, "/sensors/temp")), Ok(1));
    assert_eq!(outcome(&router, &request(Code::GET, "/")), Ok(0));
    for path in ["/sensors", "/sensors/temp/", "/sensors/temp/x", "/nope"] {
        assert_eq!(outcome(&router, &request(Code::GET, path)), Err(Code::NOT_FOUND), "{path}");
    }
}

#[test]
fn a_subtree_takes_every_path_below_it_and_says_where_its_own_ends() {
    let router = house();
    for path in ["/files", "/files/a", "/files/a/b/c", "/files/"] {
        let message = request(Code::GET, path);
        let Route::Resource { resource, depth } = router.route(&message, false) else {
            panic!("{path}")
        };
        assert_eq!((*resource.value(), depth), (3, 1), "{path}");
    }
}

#[test]
fn a_resource_inside_a_subtree_goes_first() {
    let mut router = house();
    router.insert("/files/readme", Resource::new(Methods::GET, 4));
    assert_eq!(outcome(&router, &request(Code::GET, "/files/readme")), Ok(4));
    assert_eq!(outcome(&router, &request(Code::GET, "/files/readme/x")), Ok(3));
    assert!(router.remove("/files/readme").is_some());
    assert_eq!(outcome(&router, &request(Code::GET, "/files/readme")), Ok(3));
}

#[test]
fn a_method_that_a_resource_does_not_have_is_answered_with_4_05() {
    let router = house();
    let not_allowed = Err(Code::METHOD_NOT_ALLOWED);
    assert_eq!(outcome(&router, &request(Code::DELETE, "/led")), not_allowed);
    assert_eq!(outcome(&router, &request(Code(31), "/sensors/temp")), not_allowed);
    assert_eq!(outcome(&router, &request(Code(31), "/nope")), not_allowed);
    assert_eq!(outcome(&router, &request(Code::PUT, "/.well-known/core")), not_allowed);
}

#[test]
fn if_none_match_on_what_exists_is_answered_with_4_12() {
    let router = house();
    let mut get = request(Code::GET, "/sensors/temp");
    get.options.insert(OptionNumber::IF_NONE_MATCH, b"");
    assert_eq!(outcome(&router, &get), Err(Code::PRECONDITION_FAILED));
    let mut put = request(Code::PUT, "/files/new");
    put.options.insert(OptionNumber::IF_NONE_MATCH, b"");
    assert_eq!(outcome(&router, &put), Ok(3), "the application knows what exists");
}

#[test]
fn if_match_fits_what_exists_only_without_a_tag_unless_the_application_keeps_tags() {
    let mut router = house();
    let mut put = request(Code::PUT, "/sensors/temp");
    put.options.insert(OptionNumber::IF_MATCH, b"");
    assert_eq!(outcome(&router, &put), Ok(1));
    put.options.set(OptionNumber::IF_MATCH, b"v1");
    assert_eq!(outcome(&router, &put), Err(Code::PRECONDITION_FAILED));
    router.insert("/sensors/temp", Resource::new(Methods::PUT, 5).conditional());
    assert_eq!(outcome(&router, &put), Ok(5));
    let mut missing = request(Code::PUT, "/nope");
    missing.options.insert(OptionNumber::IF_MATCH, b"");
    assert_eq!(outcome(&router, &missing), Err(Code::PRECONDITION_FAILED));
}

#[test]
fn formats_that_do_not_fit_are_answered_with_4_06_and_4_15() {
    let router = house();
    let mut get = request(Code::GET, "/sensors/temp");
    get.options.insert_uint(OptionNumber::ACCEPT, 0);
    assert_eq!(outcome(&router, &get), Ok(1));
    get.options.set_uint(OptionNumber::ACCEPT, 60);
    assert_eq!(outcome(&router, &get), Err(Code::NOT_ACCEPTABLE));
    let mut put = request(Code::PUT, "/led");
    put.options.insert_uint(OptionNumber::CONTENT_FORMAT, 60);
    assert_eq!(outcome(&router, &put), Err(Code::UNSUPPORTED_CONTENT_FORMAT));
    put.options.set_uint(OptionNumber::CONTENT_FORMAT, 50);
    assert_eq!(outcome(&router, &put), Ok(2));
}

#[test]
fn a_multicast_request_reaches_only_resources_that_take_part() {
    let router = house();
    assert!(matches!(router.route(&request(Code::GET, "/sensors/temp"), true), Route::Ignore));
    let put = router.route(&request(Code::PUT, "/led"), true);
    assert!(matches!(put, Route::Resource { .. }));
}

#[test]
fn discovery_lists_what_is_not_hidden_with_its_attributes() {
    let listed = "</files>,</led>;rt=\"light switch\",\
                  </sensors/temp>;rt=\"temperature-c\";ct=0;obs";
    assert_eq!(discover(&house(), ""), listed);
}

#[test]
fn a_path_is_listed_as_a_uri_writes_it() {
    let mut router = Router::new();
    router.insert("/a b/ü", Resource::new(Methods::GET, 0).format(ContentFormat::JSON));
    let two = Resource::new(Methods::GET, 0).format(ContentFormat(0)).format(ContentFormat(50));
    router.insert("/c", two.flag("ins"));
    assert_eq!(discover(&router, ""), "</a%20b/%C3%BC>;ct=50,</c>;ins;ct=\"0 50\"");
}

#[test]
fn a_query_narrows_discovery() {
    let router = house();
    assert_eq!(discover(&router, "rt=switch"), "</led>;rt=\"light switch\"");
    assert_eq!(discover(&router, "rt=temp*"), "</sensors/temp>;rt=\"temperature-c\";ct=0;obs");
    assert_eq!(discover(&router, "href=/fil*"), "</files>");
    assert_eq!(discover(&router, "rt=nothing"), "");
    assert_eq!(discover(&router, "rt=temp*&ct=1"), "");
}

#[test]
fn discovery_by_multicast_is_answered_only_with_something_to_list() {
    let router = house();
    let mut get = request(Code::GET, "/.well-known/core");
    get.options.insert_query("rt=switch");
    assert!(matches!(router.route(&get, true), Route::Answer(_)));
    let mut get = request(Code::GET, "/.well-known/core");
    get.options.insert_query("rt=nothing");
    assert!(matches!(router.route(&get, true), Route::Ignore));
}

#[test]
fn a_query_that_is_no_filter_is_answered_with_4_00() {
    let mut get = request(Code::GET, "/.well-known/core");
    get.options.insert_query("what");
    assert_eq!(outcome(&house(), &get), Err(Code::BAD_REQUEST));
}
