//! A fact, and the sessions, arms and rounds that it holds for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Fact;
use crate::ArmKind;

/// What a fact is about. `null` is every one, or none in particular.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Place {
    /// Session name.
    pub session: Option<String>,
    /// Arm.
    pub arm: Option<ArmKind>,
    /// Round, from 1.
    pub round: Option<u32>,
}

impl Place {
    /// A session, in every arm and round.
    pub fn session(id: &str) -> Self {
        Self {
            session: Some(id.to_owned()),
            ..Self::default()
        }
    }

    /// An arm.
    pub fn arm(arm: ArmKind) -> Self {
        Self {
            arm: Some(arm),
            ..Self::default()
        }
    }

    /// The same in one arm.
    pub fn in_arm(self, arm: ArmKind) -> Self {
        Self {
            arm: Some(arm),
            ..self
        }
    }

    /// The same in one round.
    pub fn in_round(self, round: u32) -> Self {
        Self {
            round: Some(round),
            ..self
        }
    }
}

/// A fact said once for all places that it holds for. Stored as the fact, with `places` beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<F> {
    /// Where; empty when it is about the whole.
    pub places: Vec<Place>,
    /// What.
    pub fact: F,
}

impl<F> From<F> for Placed<F> {
    fn from(fact: F) -> Self {
        Self {
            places: Vec::new(),
            fact,
        }
    }
}

/// Facts in order of the first, each once with all of its places.
pub fn group<F: PartialEq>(facts: impl IntoIterator<Item = (Place, F)>) -> Vec<Placed<F>> {
    let mut groups: Vec<Placed<F>> = Vec::new();
    for (place, fact) in facts {
        let places = Some(place).filter(|place| *place != Place::default());
        match groups.iter_mut().find(|known| known.fact == fact) {
            Some(known) => known.places.extend(places),
            None => groups.push(Placed {
                places: places.into_iter().collect(),
                fact,
            }),
        }
    }
    groups
}

impl<F: Fact> Serialize for Placed<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let mut stored = serde_json::to_value(&self.fact).map_err(S::Error::custom)?;
        if let Value::Object(object) = &mut stored {
            object.remove("text");
            let places = serde_json::to_value(&self.places).map_err(S::Error::custom)?;
            object.insert("places".to_owned(), places);
            object.insert("text".to_owned(), Value::String(self.to_string()));
        }
        stored.serialize(serializer)
    }
}

impl<'de, F: Fact> Deserialize<'de> for Placed<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut stored = Value::deserialize(deserializer)?;
        let places = stored.as_object_mut().and_then(|o| o.remove("places"));
        let places = places.map(serde_json::from_value::<Vec<Place>>);
        let places = places.transpose().map_err(D::Error::custom)?;
        let fact: F = serde_json::from_value(stored).map_err(D::Error::custom)?;
        // A sentence of another version names its places itself.
        let places = places.filter(|_| fact.code() != "other");
        Ok(Self {
            places: places.unwrap_or_default(),
            fact,
        })
    }
}

impl<F: JsonSchema> JsonSchema for Placed<F> {
    fn schema_name() -> Cow<'static, str> {
        format!("Placed{}", F::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = F::json_schema(generator);
        let places = generator.subschema_for::<Vec<Place>>();
        let mut places = places.to_value();
        if let Some(places) = places.as_object_mut() {
            let text = "What it holds for; empty when it is about the whole.";
            places.insert("description".to_owned(), text.into());
        }
        if let Some(Value::Array(variants)) = schema.get_mut("oneOf") {
            for variant in variants {
                if let Some(Value::Object(properties)) = variant.get_mut("properties") {
                    properties.insert("places".to_owned(), places.clone());
                }
            }
        }
        schema
    }
}
