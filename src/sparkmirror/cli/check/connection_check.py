"""Checks the connections of a file: each login once, and the rights of all clients that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

from sparkmirror.cli.check.broker_checks import CLIENT_ID, ClusterConnectivity, check_brokers
from sparkmirror.cli.check.needed_rights import (
    ClientNeeds,
    NeededRight,
    Resource,
    ResourceType,
    SelectedTopics,
)
from sparkmirror.cli.check.principal import login_description, principal_of
from sparkmirror.cli.check.rights_check import RightCheck, check_rights
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import describe_topics
from sparkmirror.cluster.groups import list_consumer_groups
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.errors import ClusterError, MirrorError
from sparkmirror.wire.net.routing import Router

CLIENT_ID_KEY = "client.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionCheck:
    """One login to one cluster. Without `facts` the connection failed with `error`."""

    cluster: str
    clients: tuple[str, ...]
    bootstrap_servers: str
    login: str = ""
    principal: str = ""
    error: str = ""
    facts: ClusterConnectivity | None = None
    rights: tuple[RightCheck, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def lacking(self) -> tuple[NeededRight, ...]:
        """The rights that the principal does not have."""
        return tuple(check.right for check in self.rights if check.is_granted is False)

    @property
    def is_good(self) -> bool:
        """Whether a start would succeed, as far as this connection shows."""
        reachable = self.facts is not None and self.facts.is_reachable
        return reachable and not self.error and not self.lacking and not self._broker_errors

    @property
    def _broker_errors(self) -> tuple[ClusterError, ...]:
        """The errors of brokers that clients must reach; one bootstrap server is enough."""
        if self.facts is None:
            return ()
        return tuple(b.error for b in self.facts.brokers if b.error and not b.is_bootstrap)


@dataclass(slots=True)
class _Login:
    """A connection's settings, and all clients that have them."""

    cluster: str
    properties: Mapping[str, str] = field(repr=False)
    needs: list[ClientNeeds]
    router: Router | None = field(default=None, repr=False)
    """Connected, if the cluster can be reached."""


class ConnectionChecker:
    """Checks all clients of a file. `on_progress` is called before each cluster."""

    def __init__(
        self,
        needs: Iterable[ClientNeeds],
        *,
        timeout_s: float,
        on_progress: Callable[[str], None],
    ) -> None:
        self._logins = _group_by_login(needs)
        self._timeout_s = timeout_s
        self._on_progress = on_progress
        self._topics: dict[str, set[str]] = {}
        self._groups: dict[str, set[str]] = {}

    def check(self) -> list[ConnectionCheck]:
        """Return a check for each login, in the order of the file. Raises nothing of a cluster."""
        with ExitStack() as routers:
            facts = [self._connect(login, routers) for login in self._logins]
            return [
                self._with_rights(login, check)
                for login, check in zip(self._logins, facts, strict=True)
            ]

    def _connect(self, login: _Login, routers: ExitStack) -> ConnectionCheck:
        """Connect, and list topics and groups if flows of this cluster select them."""
        base = ConnectionCheck(
            cluster=login.cluster,
            clients=tuple(need.description for need in login.needs),
            bootstrap_servers=login.properties.get("bootstrap.servers", ""),
        )
        self._on_progress(f"{login.cluster}: {base.bootstrap_servers}")
        try:
            access = ClusterAccess.from_properties(login.cluster, login.properties)
            security = access.security.current()
        except MirrorError as error:
            return replace(base, error=str(error))
        router = routers.enter_context(closing(access.new_router(CLIENT_ID)))
        facts = check_brokers(access, router, self._timeout_s)
        if facts.is_reachable:
            login.router = router
            self._list_names(login, router)
        return replace(
            base,
            login=login_description(security, login.properties),
            principal=principal_of(security, login.properties),
            facts=facts,
        )

    def _list_names(self, login: _Login, router: Router) -> None:
        """List topics and groups. What the principal may not see is left out by the brokers."""
        topics = self._topics.setdefault(login.cluster, set())
        groups = self._groups.setdefault(login.cluster, set())
        try:
            topics.update(describe_topics(router, timeout_s=self._timeout_s))
            groups.update(
                group.group_id for group in list_consumer_groups(router, timeout_s=self._timeout_s)
            )
        except ClusterError:
            return  # The check of rights names what is missing.

    def _with_rights(self, login: _Login, check: ConnectionCheck) -> ConnectionCheck:
        if login.router is None:
            return check
        rights = [right for need in login.needs for right in self._rights(need)]
        remarks = tuple(dict.fromkeys(r for need in login.needs for r in self._remarks(need)))
        error = ""
        checked: Sequence[RightCheck] = ()
        try:
            checked = check_rights(login.router, rights)
        except ClusterError as failure:
            error = f"the rights cannot be checked: {failure}"
        return replace(check, rights=tuple(checked), error=error, remarks=remarks)

    def _rights(self, need: ClientNeeds) -> Iterator[NeededRight]:
        yield from need.rights
        for topics in need.selected_topics:
            for name in sorted(self._selected(topics)):
                resource = Resource(ResourceType.TOPIC, name)
                yield from (NeededRight(resource, op, topics.purpose) for op in topics.operations)
        for groups in need.selected_groups:
            for name in sorted(self._groups.get(groups.source, ())):
                if groups.group_filter.should_replicate_group(name):
                    resource = Resource(ResourceType.GROUP, name)
                    yield from (
                        NeededRight(resource, op, groups.purpose) for op in groups.operations
                    )

    def _selected(self, topics: SelectedTopics) -> Iterator[str]:
        selection = topics.selection
        for name in {*self._topics.get(selection.flow.source, ()), *topics.named}:
            if selection.should_replicate_topic(name):
                yield (
                    selection.policy.format_remote_topic(selection.flow.source, name)
                    if topics.are_remote
                    else name
                )

    def _remarks(self, need: ClientNeeds) -> Iterator[str]:
        for topics in need.selected_topics:
            source = topics.selection.flow.source
            if not topics.are_remote and source in self._topics:
                listed = self._topics[source]
                if not any(map(topics.selection.should_replicate_topic, listed)):
                    yield (
                        f"{topics.selection.flow} selects none of the {len(listed)} topics that the"
                        " principal may describe; check topics, and grant Describe"
                    )


def _group_by_login(needs: Iterable[ClientNeeds]) -> list[_Login]:
    """Put clients together that connect to the same cluster in the same way."""
    logins: dict[tuple[str, tuple[tuple[str, str], ...]], _Login] = {}
    for need in needs:
        settings = {
            name: need.properties[name]
            for name in sorted(CLIENT_SECURITY_NAMES)
            if name in need.properties and name != CLIENT_ID_KEY
        }
        login = logins.setdefault(
            (need.cluster, tuple(settings.items())),
            _Login(cluster=need.cluster, properties=settings, needs=[]),
        )
        login.needs.append(need)
    return list(logins.values())
