//! Asks the ACME server when certificates should be renewed (ARI, RFC 9773).

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use launchway_domain::{
    certificates::{Certificate, CertificateIssuer, IssueError, RenewalWindow, Write},
    clock::Timestamp,
    secret::Secret,
};

use super::CertificateManager;
use crate::{Error, ServiceContext};

/// The most certificates that are asked for at once.
const MOST: u32 = 20;

impl CertificateManager {
    /// Plans the renewals that the ACME server has not been asked for, or is to be asked for again. Without an answer a
    /// certificate is renewed at the time that is planned.
    pub(super) async fn plan_renewals(
        &self,
        issuer: &Arc<dyn CertificateIssuer>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let unplanned = self.ports.certificates.unplanned_renewals(now, MOST).await?;
        if unplanned.is_empty() {
            return Ok(());
        }
        // While the server does not answer, it is asked once, and not for each certificate.
        let mut failure = None;
        let account = self.account().await?;
        for certificate in &unplanned {
            let window = match (&failure, &account) {
                (Some(_), _) => None,
                (None, Err(error)) => {
                    failure = Some(error.clone());
                    None
                }
                (None, Ok(account)) => match ask(issuer, account, certificate).await {
                    Ok(window) => window,
                    Err(error) => {
                        failure = Some(error);
                        None
                    }
                },
            };
            let interval = match failure {
                Some(_) => RenewalWindow::FAILED,
                None => window.map_or(RenewalWindow::WITHOUT, |window| window.interval()),
            };
            self.plan(certificate, window, now + TimeDelta::from_std(interval).unwrap_or(TimeDelta::days(1)))
                .await?;
        }
        if let Some(error) = failure {
            tracing::warn!(%error, "renewal information could not be fetched");
        }
        Ok(())
    }

    async fn plan(
        &self,
        certificate: &Certificate,
        window: Option<RenewalWindow>,
        check_at: Timestamp,
    ) -> Result<(), Error> {
        let (Some(issued), Some(planned)) = (&certificate.issued, certificate.next_attempt_at) else {
            return Ok(());
        };
        let (domain, not_after) = (certificate.domain.clone(), issued.not_after);
        let suggested =
            window.and_then(|window| window.renewal_at(planned, not_after, random(&self.context)));
        let renew_at = suggested.filter(|time| *time != planned);
        if let Some(renew_at) = renew_at {
            tracing::info!(%domain, %renew_at, "renewal planned as the ACME server suggests");
        }
        self.commit(vec![Write::PlanRenewal { domain, not_after, renew_at, check_at }.into()]).await
    }
}

/// The timeout of a question.
const LIMIT: Duration = Duration::from_secs(60);

async fn ask(
    issuer: &Arc<dyn CertificateIssuer>,
    account: &Secret<String>,
    certificate: &Certificate,
) -> Result<Option<RenewalWindow>, IssueError> {
    let Some(issued) = &certificate.issued else { return Ok(None) };
    match tokio::time::timeout(LIMIT, issuer.renewal_window(account, &issued.chain)).await {
        Ok(window) => window,
        Err(_elapsed) => Err(IssueError::new("the ACME server took too long")),
    }
}

/// Returns a random number.
pub(super) fn random(context: &ServiceContext) -> u32 {
    let bits = context.entropy.bits_256();
    u32::from_le_bytes([bits[0], bits[1], bits[2], bits[3]])
}
