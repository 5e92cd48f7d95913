"""Creates an application of a static site, and follows the log of its deployment to the end."""

import sys
import time

from launchway_client import AuthenticatedClient
from launchway_client.api.applications import create_application
from launchway_client.api.deployments import deployment
from launchway_client.api.logs import deployment_logs
from launchway_client.models import (
    ApplicationDeploymentResponse,
    ApplicationLogsResponse,
    ApplicationResponse,
    CreateApplication,
    CreateApplicationBuildPack,
    DeploymentLogsEmbed,
)
from launchway_client.types import UNSET

url, token, repository = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
made = create_application.sync(
    client=client,
    body=CreateApplication(
        name="by-python",
        repository=repository,
        branch="main",
        port=80,
        environment="production",
        build_pack=CreateApplicationBuildPack.STATIC,
    ),
)
assert isinstance(made, ApplicationResponse), made
identifier = made.data.deployments[0].id
organization = str(made.data.organization_id)
after = UNSET
while True:
    shown = deployment.sync(identifier, client=client, x_organization_id=organization)
    assert isinstance(shown, ApplicationDeploymentResponse), shown
    page = deployment_logs.sync(
        identifier, client=client, after=after, page_size=1000, embed=DeploymentLogsEmbed.NONE
    )
    assert isinstance(page, ApplicationLogsResponse), page
    # Without `after` the newest line comes first.
    lines = list(reversed(page.data.logs)) if after is UNSET else page.data.logs
    for line in lines:
        print("line", line.log)
        after = line.id
    status = shown.data.status.status
    if status in ("deployed", "failed", "cancelled") and not lines:
        print("end", status)
        break
    time.sleep(0.1)
