//! Injects the faults of the schedule into the operator, its connections, and the server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::api::{Api, MERGE};
use super::driver::Driver;
use super::history::Cycle;
use super::operator::Operator;
use super::proxy::Proxy;
use super::schedule::{Definition, Fault};
use super::server::Server;
use super::tokens::Tokens;
use super::world;

const PATIENCE: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// After this time, the deletion of the definition counts as stuck.
pub(super) const DELETION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the operator is frozen before the server drops its history.
const BEHIND: Duration = Duration::from_millis(1500);
const CUT_PAUSE: Duration = Duration::from_millis(700);

pub(super) struct Faults {
    pub(super) server: Server,
    pub(super) operator: Arc<Operator>,
    pub(super) proxy: Proxy,
    pub(super) tokens: Tokens,
    pub(super) driver: Arc<Mutex<Driver>>,
    pub(super) counts: BTreeMap<&'static str, u32>,
    pub(super) cycles: Vec<Cycle>,
    pub(super) freed: BTreeSet<String>,
}

impl Faults {
    /// Injects one fault; everything works again when this returns.
    pub(super) async fn inject(&mut self, fault: &Fault) -> Result<()> {
        *self.counts.entry(fault.name()).or_default() += 1;
        let operator = Arc::clone(&self.operator);
        match fault {
            Fault::KillOperator { down } => {
                operator.kill()?;
                sleep(*down).await;
                operator.start()
            }
            Fault::StopOperator { down } => {
                operator.stop().await?;
                sleep(*down).await;
                operator.start()
            }
            Fault::FreezeOperator(time) => {
                operator.freeze(true)?;
                sleep(*time).await;
                operator.freeze(false)
            }
            Fault::KillServer { down } => {
                self.server.kill()?;
                sleep(*down).await;
                self.server.start().await
            }
            Fault::FreezeServer(time) => {
                self.server.freeze(true)?;
                sleep(*time).await;
                self.server.freeze(false)
            }
            Fault::Expire => self.expire().await,
            Fault::Cut { times } => {
                for _ in 0..*times {
                    self.proxy.cut();
                    sleep(CUT_PAUSE).await;
                }
                Ok(())
            }
            Fault::Silence(time) => {
                self.proxy.silence();
                sleep(*time).await;
                self.proxy.cut();
                Ok(())
            }
            Fault::RotateToken => {
                let (number, token) = self.tokens.current();
                self.tokens.issue().await?;
                self.tokens.revoke(number, &token).await
            }
            Fault::RevokeToken { gap } => {
                let (number, token) = self.tokens.current();
                self.tokens.revoke(number, &token).await?;
                sleep(*gap).await;
                self.tokens.issue().await
            }
        }
    }

    async fn expire(&mut self) -> Result<()> {
        self.operator.freeze(true)?;
        sleep(BEHIND).await;
        self.server.compact().await?;
        self.server.kill()?;
        self.server.start().await?;
        self.operator.freeze(false)
    }

    /// Deletes the definition with all objects, waits until it is gone, and creates it again.
    pub(super) async fn cycle(&mut self, how: Definition) -> Result<()> {
        let driver = Arc::clone(&self.driver);
        let mut driver = driver.lock().await;
        if how == Definition::OperatorDown {
            self.operator.kill()?;
        }
        let mut api = Api::new(&self.server.endpoint)?;
        let path = format!("{}/{}", world::DEFINITIONS, world::DEFINITION_NAME);
        let began = Instant::now();
        let json = "application/json";
        let (status, answer) = api.send("DELETE", &path, json, None, PATIENCE).await?;
        if !matches!(status, 200 | 202 | 404) {
            bail!("could not delete the definition: {status} {answer}");
        }
        if how == Definition::OperatorDown {
            sleep(BEHIND).await;
            self.operator.start()?;
        }
        let mut is_stuck = false;
        while api.get(&path, PATIENCE).await?.0 != 404 {
            if began.elapsed() > DELETION_TIMEOUT && !is_stuck {
                is_stuck = true;
                self.free(&mut api).await?;
            }
            if began.elapsed() > DELETION_TIMEOUT * 2 {
                bail!("the definition is not gone though nothing holds its objects");
            }
            sleep(POLL_INTERVAL).await;
        }
        self.cycles.push(Cycle { seconds: began.elapsed().as_secs_f64(), is_stuck });
        driver.forget();
        create_definition(&mut api).await?;
        driver.fill().await
    }

    /// Removes the finalizers manually.
    async fn free(&mut self, api: &mut Api) -> Result<()> {
        for object in api.list(world::GADGETS, PATIENCE).await? {
            let meta = &object["metadata"];
            let name = meta["name"].as_str().context("an object without a name")?;
            self.freed.extend(meta["uid"].as_str().map(str::to_owned));
            let path = format!("{}/{name}", world::GADGETS);
            let body = json!({"metadata": {"finalizers": null}});
            api.send("PATCH", &path, MERGE, Some(&body), PATIENCE).await?;
        }
        Ok(())
    }
}

/// Creates the definition, and waits until its objects can be listed.
async fn create_definition(api: &mut Api) -> Result<()> {
    api.ensure(world::DEFINITIONS, &world::definition(), PATIENCE).await?;
    served(api).await
}

/// Waits until the objects of the definition can be listed.
pub(super) async fn served(api: &mut Api) -> Result<()> {
    let began = Instant::now();
    while api.get(world::GADGETS, PATIENCE).await?.0 != 200 {
        if began.elapsed() > PATIENCE {
            bail!("the definition is not served");
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
