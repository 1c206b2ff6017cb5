"""`5spot doctor`: what the machine controller needs, looked for in a live cluster."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from fivespot.cli.groups import group_options
from fivespot.cli.kubeconfigs import acting_as_option, check_kubeconfig, cluster_options, local_child_option
from fivespot.cli.leading import lease_options
from fivespot.cli.output import echo_json
from fivespot.core.doctor.finding import Finding, Level, worst
from fivespot.core.names import LEADER_LEASE
from fivespot.core.text import counted

if TYPE_CHECKING:
    from fivespot.adapters.kube.doctor.examination import Section
    from fivespot.core.api.allowed import AllowedGroups

_MARKS = {Level.OK: "ok  ", Level.WARNING: "warn", Level.FAILED: "FAIL"}


@click.command("doctor")
@cluster_options
@acting_as_option
@local_child_option
@group_options
@lease_options(LEADER_LEASE)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the answer.",
)
def command(
    kubeconfig: str | None,
    context: str | None,
    acting_as: str | None,
    allow_local_child: bool,
    allowed: "AllowedGroups",
    lease_name: str | None,
    lease_namespace: str,
    output: str,
) -> None:
    """What keeps the machine controller from working, and the fix.

    Looks at what the controller needs, in the order in which it needs it: the API server, our kinds and their schemas, who leads,
    machines with an invalid spec, Cluster API and the kinds that machines are made of, every permission, the schedules that
    machines refer to, and every child cluster, through the kubeconfig in its Secret. It changes nothing.

    To see what the controller's own account may do, run it where the controller runs, or as that account:

    5spot doctor --as system:serviceaccount:5spot-system:5spot-controller

    Exit status: 0 when nothing has failed (there may be warnings), 1 when something has.
    """
    check_kubeconfig(kubeconfig, context)
    found: list[Section] = []

    async def walk() -> None:
        from fivespot.adapters.clock import SystemClock  # noqa: PLC0415 - not for --help
        from fivespot.adapters.kube.doctor.examination import Examination  # noqa: PLC0415
        from fivespot.adapters.kube.gateway import Gateway  # noqa: PLC0415

        connecting = Gateway.connect(kubeconfig=kubeconfig, context=context, acting_as=acting_as)
        async with await connecting as gateway:
            examination = Examination(
                gateway=gateway,
                clock=SystemClock(),
                namespace=lease_namespace,
                lease=lease_name or LEADER_LEASE,
                allow_local=allow_local_child,
                allowed=allowed,
            )
            async for section in examination.sections():
                found.append(section)
                if output == "text":
                    click.echo("\n".join(_lines(section)))

    asyncio.run(walk())
    if output == "json":
        echo_json([_entry(section, finding) for section in found for finding in section.findings])
    findings = [finding for section in found for finding in section.findings]
    if output == "text":
        click.echo(_summary(findings))
    if worst(findings) is Level.FAILED:
        raise click.exceptions.Exit(1)


def _lines(section: "Section") -> Iterator[str]:
    yield section.title
    for finding in section.findings:
        yield f"  {_MARKS[finding.level]}  {finding.subject}: {finding.message}"
        if finding.fix:
            yield f"        fix: {finding.fix}"


def _summary(findings: list[Finding]) -> str:
    wrong = sum(finding.level is Level.FAILED for finding in findings)
    doubtful = sum(finding.level is Level.WARNING for finding in findings)
    if not wrong and not doubtful:
        return f"{counted(len(findings), 'check')}, nothing to do"
    return f"{counted(len(findings), 'check')}: {wrong} failed, {counted(doubtful, 'warning')}"


def _entry(section: "Section", finding: Finding) -> dict[str, Any]:
    return {
        "section": section.title,
        "level": finding.level.value,
        "subject": finding.subject,
        "message": finding.message,
        "fix": finding.fix,
    }
