//! From a target to an address that can be asked: key read, simulated or managed server started.
//! Nobody was asked who it is yet.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::error::ConnectError;
use super::identity::Identity;
use crate::life::{Life, Resets, StartError, Valued, Witness, begin, contradicted, prove};
use crate::log::LogIndex;
use crate::profiles::{DoorSpec, Interface, Target};
use flashrig_clock::Stamp;
use flashrig_http::{KeyStyle, Upstream};
use flashrig_record::{ContextSource, Managed};
use flashrig_sim::{Faults, Script, Sim, SimConfig, SimHandle};

/// What the user said about the server, beside which one it is.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// `--model`.
    pub model: Option<String>,
    /// `--context`, in tokens.
    pub context: Option<u64>,
    /// `--key-env`, `--header-env`, `--basic-env`, `--ca`.
    pub door: DoorSpec,
}

/// A server that can be asked. Dropping it stops one that was started here.
#[derive(Debug)]
pub struct Opened {
    /// Profile name, or the address.
    pub name: String,
    /// Base address.
    pub url: String,
    /// How requests reach it.
    pub upstream: Upstream,
    /// The model that was asked for, by the user or the profile.
    pub model: Option<String>,
    /// What its profile says about how to look into it.
    pub interface: Interface,
    /// What its log says.
    pub log_index: LogIndex,
    /// Time factor of a simulated server that was started here.
    pub speed: Option<f64>,
    /// The simulated server that was started here.
    pub sim: Option<SimHandle>,
    /// What becomes of its process.
    pub life: Life,
    /// How it was started; of its variables nothing yet.
    pub managed: Option<Box<Managed>>,
    /// What it was started with.
    pub(super) valued: Vec<Valued>,
    /// Context length that the user gave, in tokens.
    wanted_context: Option<u64>,
    /// Context length in the profile, in tokens.
    profile_context: Option<u64>,
}

impl Opened {
    /// How it was started, and of each variable whether it took effect, as far as the server has
    /// told by now; `None` when somebody else started it.
    pub async fn proofs(&self) -> Option<Box<Managed>> {
        let mut managed = self.managed.clone()?;
        self.life.catch_up().await;
        let witness = Witness {
            server: &self.upstream,
            metrics: &self.interface.metrics,
            log_index: &self.log_index,
        };
        managed.variables = prove(&self.valued, &witness).await;
        Some(managed)
    }

    /// The same.
    ///
    /// # Errors
    /// The server contradicts a value that it was given.
    pub async fn proven(&self) -> Result<Option<Box<Managed>>, StartError> {
        let managed = self.proofs().await;
        if let Some(managed) = &managed {
            contradicted(&self.name, &self.valued, &managed.variables)?;
        }
        Ok(managed)
    }

    /// The context length in tokens, and who told it: the user before the server before the
    /// profile.
    pub fn context(&self, identity: &Identity) -> (Option<u64>, ContextSource) {
        let given = self.wanted_context.or(self.profile_context);
        match (self.wanted_context, identity.context, given) {
            (Some(reported), _, _) => (Some(reported), ContextSource::Given),
            (None, Some(reported), _) => (Some(reported), ContextSource::Server),
            (None, None, Some(reported)) => (Some(reported), ContextSource::Given),
            (None, None, None) => (None, ContextSource::Unknown),
        }
    }
}

/// Opens the target, starting it when it is simulated or managed.
///
/// # Errors
/// The server does not start, the key's variable is not set, or the address cannot be used.
/// Nothing is left running.
pub async fn open(
    target: &Target,
    wanted: &Wanted,
    scripts: Vec<Script>,
    sim_log: Option<PathBuf>,
) -> Result<Opened, ConnectError> {
    match target {
        Target::Simulated {
            profile,
            speed,
            interface,
        } => {
            let door = wanted.door.read()?;
            let log_index = LogIndex::masking(interface.log.clone(), door.redactor());
            let log = log_index.clone();
            let config = SimConfig {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                profile: profile.clone(),
                speed: *speed,
                scripts,
                seed: 1,
                log: sim_log,
                server_log: None,
                faults: Faults::default(),
            };
            let sim = Sim::start_with_log(config, move |line| log.line(Stamp::now(), line))?;
            let url = sim.base_url();
            Ok(Opened {
                name: profile.name.clone(),
                upstream: Upstream::new(&url, door, KeyStyle::ByDialect)?,
                url,
                model: wanted.model.clone(),
                interface: interface.clone(),
                log_index,
                speed: Some(*speed),
                sim: Some(sim),
                life: Life::not_ours(),
                managed: None,
                valued: Vec::new(),
                wanted_context: wanted.context,
                profile_context: Some(profile.context),
            })
        }
        Target::Attached {
            name,
            address,
            model,
            context,
            door,
            interface,
        } => {
            let door = wanted.door.or(door).read()?;
            let address = (**address).clone();
            let upstream = Upstream::to(address, door, KeyStyle::ByDialect)?;
            let log_index = LogIndex::masking(interface.log.clone(), upstream.redactor().clone());
            let life = resetting(Life::not_ours(), interface, &upstream);
            Ok(Opened {
                name: name.clone(),
                url: upstream.url(),
                upstream,
                model: wanted.model.clone().or_else(|| model.clone()),
                interface: interface.clone(),
                log_index,
                speed: None,
                sim: None,
                life,
                managed: None,
                valued: Vec::new(),
                wanted_context: wanted.context,
                profile_context: *context,
            })
        }
        Target::Managed {
            name,
            recipe,
            interface,
            places,
        } => {
            let door = wanted.door.or(&recipe.door).read()?;
            let log_index = LogIndex::masking(interface.log.clone(), door.redactor());
            let started = begin(recipe, places, log_index.clone(), &door).await?;
            let upstream = Upstream::new(&started.url, door, KeyStyle::ByDialect)?;
            let life = resetting(started.life, interface, &upstream);
            Ok(Opened {
                name: name.clone(),
                upstream,
                url: started.url,
                model: wanted.model.clone().or(started.model),
                interface: interface.clone(),
                speed: None,
                sim: None,
                life,
                log_index,
                managed: Some(Box::new(started.record)),
                valued: started.valued,
                wanted_context: wanted.context,
                profile_context: recipe.context,
            })
        }
    }
}

/// The life with the way of its profile to reset.
fn resetting(life: Life, interface: &Interface, server: &Upstream) -> Life {
    match interface.reset.clone() {
        Some(reset) => life.resetting(Resets {
            reset,
            server: server.clone(),
        }),
        None => life,
    }
}
