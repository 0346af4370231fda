//! Which server `--server` means: an address, a profile, or the embedded one.

use std::path::Path;

use super::change::{self, Change};
use super::door::DoorSpec;
use super::library::{Interface, Kind, Library};
use super::places::Places;
use super::recipe::Recipe;
use flashrig_config::ProfileError;
use flashrig_http::{Address, UpstreamError, without_user_info};
use flashrig_sim::SimProfile;

/// The server that was asked for.
#[derive(Clone, Debug)]
pub enum Target {
    /// flashrig's own, started for the run.
    Simulated {
        /// Profile.
        profile: SimProfile,
        /// Time factor.
        speed: f64,
        /// How to look into it.
        interface: Interface,
    },
    /// One that runs already.
    Attached {
        /// Profile name, or the address.
        name: String,
        /// Base address.
        address: Box<Address>,
        /// The model to ask for, from the profile.
        model: Option<String>,
        /// Context length in tokens, from the profile.
        context: Option<u64>,
        /// What opens its door, from the profile.
        door: DoorSpec,
        /// How to look into it.
        interface: Interface,
    },
    /// One that flashrig starts for the run.
    Managed {
        /// Profile name, with what was set.
        name: String,
        /// How it is started.
        recipe: Box<Recipe>,
        /// How to look into it.
        interface: Interface,
        /// Where its program and files are looked for.
        places: Box<Places>,
    },
}

/// A `--server` that means nothing.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No profile of that name, or an invalid one.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// An address that cannot be used.
    #[error(transparent)]
    Address(#[from] UpstreamError),
    /// An address without its scheme.
    #[error("{0:?} is not a server profile; if it is an address, write http://{0}")]
    NoScheme(String),
    /// `--speed` with a real server.
    #[error(
        "--speed is for simulated servers; {0} is a real one, and its time is what is measured"
    )]
    SpeedOfReal(String),
    /// `--set` with an address.
    #[error("--set changes values of a profile; {0} is an address and has none")]
    ChangeOfReal(String),
    /// Two values for one thing.
    #[error("--set gives {0} twice; leave one of them out")]
    SetTwice(String),
    /// Where a server is to be started cannot be told.
    #[error("the current folder, or flashrig's own program, cannot be found: {0}")]
    Surroundings(#[from] std::io::Error),
    /// A speed that is not a positive number.
    #[error("--speed {0} is not a positive number")]
    Speed(f64),
}

impl Target {
    /// Reads `--server` (a profile's name or an address; `sim` when absent) and `--speed`.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn parse(
        server: Option<&str>,
        speed: Option<f64>,
        project: Option<&Path>,
    ) -> Result<Self, TargetError> {
        Self::parse_with(server, speed, &[], project)
    }

    /// The same with some values of a profile changed.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn parse_with(
        server: Option<&str>,
        speed: Option<f64>,
        changes: &[Change],
        project: Option<&Path>,
    ) -> Result<Self, TargetError> {
        if let Some(speed) = speed.filter(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(TargetError::Speed(speed));
        }
        if let Some(name) = change::twice(changes) {
            return Err(TargetError::SetTwice(name));
        }
        let name = server.unwrap_or("sim");
        if let Some((profile, url)) = with_profile(name) {
            return Self::at(profile, url, speed, changes, project);
        }
        let addressed = name.contains([':', '/', '.']);
        if addressed && !changes.is_empty() {
            return Err(TargetError::ChangeOfReal(without_user_info(name)));
        }
        let target = if Address::is_meant(name) {
            let address = Address::parse(name)?;
            Self::Attached {
                name: address.to_string(),
                address: Box::new(address),
                model: None,
                context: None,
                door: DoorSpec::default(),
                interface: Interface::unknown(),
            }
        } else if addressed {
            return Err(TargetError::NoScheme(without_user_info(name)));
        } else {
            let found = Library::new(project).load_with(name, changes)?;
            let interface = found.interface;
            match found.kind {
                Kind::Simulated(profile) => Self::Simulated {
                    profile,
                    speed: speed.unwrap_or(1.0),
                    interface,
                },
                Kind::Attached {
                    address,
                    model,
                    context,
                    door,
                } => Self::Attached {
                    name: name.to_owned(),
                    address,
                    model,
                    context,
                    door,
                    interface,
                },
                Kind::Managed(recipe) => Self::Managed {
                    name: found.name,
                    recipe,
                    interface,
                    places: Box::new(Places::look(project)?),
                },
            }
        };
        match &target {
            Self::Attached { name, .. } | Self::Managed { name, .. } if speed.is_some() => {
                Err(TargetError::SpeedOfReal(name.clone()))
            }
            _ => Ok(target),
        }
    }

    /// A server that runs already at an address, and what a profile knows of its kind.
    fn at(
        profile: &str,
        url: &str,
        speed: Option<f64>,
        changes: &[Change],
        project: Option<&Path>,
    ) -> Result<Self, TargetError> {
        let address = Address::parse(url)?;
        let name = format!("{profile}@{address}");
        if !changes.is_empty() {
            return Err(TargetError::ChangeOfReal(address.to_string()));
        }
        if speed.is_some() {
            return Err(TargetError::SpeedOfReal(name));
        }
        let found = Library::new(project).load(profile)?;
        let (model, context, door) = match found.kind {
            Kind::Simulated(_) => (None, None, DoorSpec::default()),
            Kind::Attached {
                model,
                context,
                door,
                ..
            } => (model, context, door),
            // The model may depend on what it is started with.
            Kind::Managed(recipe) => (None, None, recipe.door),
        };
        Ok(Self::Attached {
            name,
            address: Box::new(address),
            model,
            context,
            door,
            interface: found.interface,
        })
    }
}

/// `PROFILE@ADDRESS` in its two parts.
fn with_profile(text: &str) -> Option<(&str, &str)> {
    let (profile, url) = text.split_once('@')?;
    (Address::is_meant(url) && !Address::is_meant(profile)).then_some((profile, url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_with_and_without_v1() {
        for url in [
            "http://h:1",
            "http://h:1/",
            "http://h:1/v1",
            "http://h:1/v1/",
        ] {
            match Target::parse(Some(url), None, None).unwrap() {
                Target::Attached { address, .. } => assert_eq!(address.to_string(), "http://h:1"),
                other => panic!("{url} is taken for {other:?}"),
            }
        }
    }

    #[test]
    fn a_password_in_an_address_is_in_no_name_and_no_debug_output() {
        for typed in ["http://u:hunter22@h:1", "vllm@http://u:hunter22@h:1"] {
            let found = Target::parse(Some(typed), None, None).unwrap();
            let shown = format!("{found:?}");
            assert!(!shown.contains("hunter"), "{shown}");
            let changes = ["a=1".parse().unwrap()];
            let error = Target::parse_with(Some(typed), None, &changes, None);
            let error = error.unwrap_err().to_string();
            assert!(!error.contains("hunter"), "{error}");
        }
        assert!(matches!(
            Target::parse(Some("vllm@unix:/a.sock"), None, None),
            Ok(Target::Attached { name, .. }) if name == "vllm@unix:/a.sock"
        ));
    }

    #[test]
    fn an_address_without_a_scheme_is_answered_with_the_whole_one() {
        let error = Target::parse(Some("127.0.0.1:8080"), None, None)
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("write http://127.0.0.1:8080"), "{error}");
    }

    #[test]
    fn a_profile_with_an_address_lends_its_names_to_the_server_there() {
        let found = Target::parse(Some("vllm@http://h:1/v1"), None, None).unwrap();
        let Target::Attached {
            name,
            address,
            interface,
            ..
        } = found
        else {
            panic!("{found:?} is not attached");
        };
        assert_eq!(
            (name.as_str(), address.to_string().as_str()),
            ("vllm@http://h:1", "http://h:1")
        );
        assert!(!interface.log.is_empty());
        let changes = ["max_num_seqs=1".parse().unwrap()];
        let error = Target::parse_with(Some("vllm@http://h:1"), None, &changes, None);
        assert!(matches!(error, Err(TargetError::ChangeOfReal(_))));
        let error = Target::parse(Some("vlm@http://h:1"), None, None).unwrap_err();
        assert!(
            error.to_string().contains("did you mean \"vllm\"?"),
            "{error}"
        );
    }

    #[test]
    fn speed_of_a_real_server_is_refused() {
        let error = Target::parse(Some("http://h:1"), Some(2.0), None).unwrap_err();
        assert!(matches!(error, TargetError::SpeedOfReal(_)), "{error}");
    }

    #[test]
    fn an_unknown_profile_is_answered_with_the_nearest() {
        let error = Target::parse(Some("smi"), None, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("did you mean \"sim\"?"), "{error}");
    }
}
