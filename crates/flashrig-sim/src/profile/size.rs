//! Sizes of memory as people write them: `16GB`, `512MB`, or a bare number of bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes. Written as `16GB`, `1.5GB`, `512MB`, `64KB` (in powers of 1,024) or as a
/// bare number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u64); 4] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a size of memory; write it like 16GB, 512MB or 4096");
        let trimmed = text.trim();
        let upper = trimmed.to_ascii_uppercase();
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| upper.strip_suffix(unit).map(|d| (d.trim_end(), *factor)))
            .unwrap_or((upper.as_str(), 1));
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        #[expect(clippy::cast_precision_loss, reason = "units are powers of two")]
        let bytes = number * factor as f64;
        if !(plain && bytes.is_finite() && bytes < 9e15) {
            return Err(wrong());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        Ok(Self(bytes.round() as u64))
    }
}

impl std::fmt::Display for ByteSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = UNITS
            .iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        let (unit, factor) = whole.unwrap_or(&UNITS[3]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Bytes(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Bytes(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A size of memory: bytes as a number, or text such as 16GB, 512MB, 64KB (powers of 1,024)",
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1024_and_written_as_they_were() {
        for (text, bytes) in [
            ("16GB", 16 << 30),
            ("512MB", 512 << 20),
            ("24KB", 24 << 10),
            ("7", 7),
            ("0", 0),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size.0, bytes);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        assert_eq!("1.5gb".parse(), Ok(ByteSize(3 << 29)));
        for text in [
            "",
            "GB",
            "-1GB",
            "4GiB",
            "NaN",
            "inf",
            "1e3MB",
            "99999999999GB",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text:?} was read");
        }
    }
}
