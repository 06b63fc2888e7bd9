//! SenML in CBOR (RFC 8428 s6).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::data::Type;
use minicbor::{Decoder, Encoder, decode};

use super::{Entry, Fault, Field, RECORDS_MAX, Record, Scalar, SenmlError, fields, writable};
use crate::Problem;

/// CBOR tag of a decimal fraction: an exponent to ten and a mantissa (RFC 8949 s3.4.4).
const DECIMAL_FRACTION: u64 = 4;

/// Reads a pack. Lists and maps of indefinite length are taken too, as streams have them.
pub fn parse_cbor(bytes: &[u8]) -> Result<Vec<Record>, SenmlError> {
    let mut decoder = Decoder::new(bytes);
    let len = decoder.array().map_err(|error| syntax(&decoder, "pack", &error))?;
    if len.is_some_and(|len| len > RECORDS_MAX as u64) {
        return Err(SenmlError::TooManyRecords);
    }
    let mut records = Vec::new();
    while more(&mut decoder, len, records.len())? {
        if records.len() == RECORDS_MAX {
            return Err(SenmlError::TooManyRecords);
        }
        let record = record(&mut decoder, records.len())?;
        records.push(record);
    }
    if decoder.position() != bytes.len() {
        return Err(SenmlError::syntax("end of pack", decoder.position(), Problem::Length));
    }
    Ok(records)
}

/// Whether a list or map of `len` members, or of indefinite length, has another after `read`.
fn more(decoder: &mut Decoder<'_>, len: Option<u64>, read: usize) -> Result<bool, SenmlError> {
    match len {
        Some(len) => Ok((read as u64) < len),
        None => match decoder.datatype().map_err(|error| syntax(decoder, "break", &error))? {
            Type::Break => {
                decoder.set_position(decoder.position() + 1);
                Ok(false)
            }
            _ => Ok(true),
        },
    }
}

fn record(decoder: &mut Decoder<'_>, place: usize) -> Result<Record, SenmlError> {
    let len = decoder.map().map_err(|error| syntax(decoder, "record", &error))?;
    let mut record = Record::default();
    let mut read = 0;
    while more(decoder, len, read)? {
        read += 1;
        let field = match label(decoder)? {
            Label::Known(field) => field,
            // RFC 8428 s4.4: a field whose label ends with `_` MUST be understood or refused.
            Label::Unknown(label) if label.ends_with('_') => {
                return Err(SenmlError::at(place)(Fault::MustUnderstand(label.into())));
            }
            Label::Unknown(_) => {
                decoder.skip().map_err(|error| syntax(decoder, "unknown field", &error))?;
                continue;
            }
        };
        let value = scalar(decoder, field)?;
        let value = value.ok_or(Fault::Kind(field.label()));
        value.and_then(|value| record.set(field, value)).map_err(SenmlError::at(place))?;
    }
    Ok(record)
}

enum Label<'b> {
    Known(Field),
    /// Its text; empty for a number.
    Unknown(&'b str),
}

fn label<'b>(decoder: &mut Decoder<'b>) -> Result<Label<'b>, SenmlError> {
    let error = |decoder: &Decoder<'b>, error: &decode::Error| syntax(decoder, "label", error);
    if decoder.datatype().map_err(|problem| error(decoder, &problem))? == Type::String {
        let text = decoder.str().map_err(|problem| error(decoder, &problem))?;
        return Ok(Field::from_label(text).map_or(Label::Unknown(text), Label::Known));
    }
    let number = decoder.i64().map_err(|problem| error(decoder, &problem))?;
    Ok(Field::from_number(number).map_or(Label::Unknown(""), Label::Known))
}

/// The next value; `None` if it is none that any field can have.
fn scalar(decoder: &mut Decoder<'_>, field: Field) -> Result<Option<Scalar>, SenmlError> {
    let read = |decoder: &mut Decoder<'_>| -> Result<Option<Scalar>, decode::Error> {
        Ok(Some(match decoder.datatype()? {
            Type::Bool => Scalar::Boolean(decoder.bool()?),
            // RFC 8428 s6: texts and octets of definite length.
            Type::String => Scalar::Text(String::from(decoder.str()?)),
            Type::Bytes => Scalar::Data(Vec::from(decoder.bytes()?)),
            _ => return Ok(number(decoder)?.map(Scalar::Number)),
        }))
    };
    let start = decoder.position();
    let value = read(decoder).map_err(|error| syntax(decoder, field.label(), &error))?;
    if value.is_none() {
        decoder.set_position(start);
        decoder.skip().map_err(|error| syntax(decoder, field.label(), &error))?;
    }
    Ok(value)
}

/// An integer, a float or a decimal fraction, if it is one and finite.
fn number(decoder: &mut Decoder<'_>) -> Result<Option<f64>, decode::Error> {
    let number = match decoder.datatype()? {
        Type::F16 => half(decoder)?,
        Type::F32 => f64::from(decoder.f32()?),
        Type::F64 => decoder.f64()?,
        Type::Tag if decoder.tag()?.as_u64() == DECIMAL_FRACTION => {
            if decoder.array()? != Some(2) {
                return Ok(None);
            }
            let (exponent, mantissa) = (integer(decoder)?, integer(decoder)?);
            let (Some(exponent), Some(mantissa)) = (exponent, mantissa) else { return Ok(None) };
            // The text's way to a float is the one that rounds once.
            format!("{mantissa}e{exponent}").parse().unwrap_or(f64::NAN)
        }
        _ => match integer(decoder)? {
            Some(integer) => integer as f64,
            None => return Ok(None),
        },
    };
    Ok(number.is_finite().then_some(number))
}

/// A float of 16 bits (RFC 8949 appendix D), at which the decoder stands.
fn half(decoder: &mut Decoder<'_>) -> Result<f64, decode::Error> {
    let start = decoder.position() + 1;
    let Some(&[high, low]) = decoder.input().get(start..start + 2) else {
        return Err(decode::Error::end_of_input());
    };
    decoder.set_position(start + 2);
    let (exponent, mantissa) =
        ((high >> 2) & 0x1f, f64::from(u16::from(high & 3) << 8 | u16::from(low)));
    // 2^n for the n of 16-bit floats, all of which are normal in 64 bits.
    let power = |n: i16| f64::from_bits(u64::from((1023 + n) as u16) << 52);
    let magnitude = match exponent {
        0 => mantissa * power(-24),
        31 => f64::NAN,
        _ => (mantissa + 1024.0) * power(i16::from(exponent) - 25),
    };
    Ok(if high & 0x80 == 0 { magnitude } else { -magnitude })
}

fn integer(decoder: &mut Decoder<'_>) -> Result<Option<i128>, decode::Error> {
    match decoder.datatype()? {
        Type::U8
        | Type::U16
        | Type::U32
        | Type::U64
        | Type::I8
        | Type::I16
        | Type::I32
        | Type::I64
        | Type::Int => Ok(Some(i128::from(decoder.int()?))),
        _ => Ok(None),
    }
}

fn syntax(decoder: &Decoder<'_>, field: &'static str, error: &decode::Error) -> SenmlError {
    let problem = if error.is_end_of_input() { Problem::Truncated } else { Problem::Value };
    let offset = error.position().unwrap_or(decoder.position());
    SenmlError::syntax(field, offset.min(decoder.input().len()), problem)
}

/// Writes a pack: numbers that are whole as integers, others in the shortest float that is exact.
pub fn emit_cbor(records: &[Record], out: &mut Vec<u8>) -> Result<(), SenmlError> {
    writable(records)?;
    let mut encoder = Encoder::new(out);
    // RFC 8428 s6: a pack is a list of definite length.
    let mut write = || -> Result<(), minicbor::encode::Error<core::convert::Infallible>> {
        encoder.array(records.len() as u64)?;
        for record in records {
            encoder.map(fields(record).count() as u64)?;
            for (field, entry) in fields(record) {
                encoder.i8(Field::ALL[field as usize].2)?;
                match entry {
                    Entry::Text(text) => encoder.str(text)?,
                    Entry::Boolean(one) => encoder.bool(one)?,
                    Entry::Data(octets) => encoder.bytes(octets)?,
                    Entry::Number(one) => write_number(&mut encoder, one)?,
                };
            }
        }
        Ok(())
    };
    write().expect("a Vec takes everything");
    Ok(())
}

fn write_number<'e, 'o>(
    encoder: &'e mut Encoder<&'o mut Vec<u8>>,
    number: f64,
) -> Result<&'e mut Encoder<&'o mut Vec<u8>>, minicbor::encode::Error<core::convert::Infallible>> {
    let whole = number as i64;
    let exact = (whole as f64).to_bits() == number.to_bits() && whole != i64::MAX;
    let short = number as f32;
    if exact {
        encoder.i64(whole)
    } else if f64::from(short).to_bits() == number.to_bits() {
        encoder.f32(short)
    } else {
        encoder.f64(number)
    }
}
