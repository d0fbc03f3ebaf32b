"""Decides when the plan of a query changes between sites: distributed control, by the sites among themselves.

Of the announced figures, a site reads only its own. What it knows of others comes with their tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from braid.adapt.controller import Policy
from braid.adapt.network.distributed import DistributedController
from braid.adapt.network.messages import Action, Send
from braid.adapt.network.proposal import Comparison, Proposal
from braid.adapt.network.token import Token
from braid.channels.channels import Channels
from braid.errors import BraidError, ModelError
from braid.hosts.mailbox import Mailbox
from braid.hosts.network_adaptation import LOOK_SECONDS, NetworkAdaptation
from braid.hosts.registry import Registry
from braid.planning.deployment import Deployment
from braid.planning.solution.written import solution_of, written_of
from braid.runtime.sites.deployed import Deployed

logger = logging.getLogger(__name__)


class DistributedAdaptation(NetworkAdaptation[DistributedController]):
    """The controller of a query at one site, in the program that runs the site.

    Controllers send each other tokens. What they propose goes to the site that coordinates plan changes.
    """

    pause = 0.0

    def __init__(self, query: str, site: str, registry: Registry, channels: Channels, policy: Policy) -> None:
        super().__init__(query, registry, policy)
        self._site = site
        self._mailbox = Mailbox(query, channels)
        self._observed = float("-inf")

    def _made(self, comparison: Comparison, generation: int) -> DistributedController:
        return DistributedController(self._site, comparison, generation)

    def _decide(self, controller: DistributedController, deployed: Deployed, time: float) -> Proposal | None:
        mail = self._mailbox.take(self._site)
        coordinator = next(iter(deployed.current.results))
        if self._site == coordinator:
            self._measure(deployed, time)
        if self._registry.figures.is_pinned(self._query):
            return None
        proposals = [proposal for content in mail if (proposal := self._proposed(content, deployed)) is not None]
        for action in [*self._news(controller, time), *self._answers(controller, deployed, mail, time)]:
            if isinstance(action, Send):
                self._send_token(action)
            elif self._site == coordinator:
                proposals.append(action)
            else:
                self._mailbox.send(self._site, coordinator, "proposal", self._written(action))
        return proposals[0] if proposals else None

    def _news(self, controller: DistributedController, time: float) -> Iterator[Action]:
        """What the controller asks for now that links or figures may have changed."""
        if self._topology is not self._registry.topology:
            self._topology = self._registry.topology
            yield from controller.rewired(self._topology, time)
        if time - self._observed >= LOOK_SECONDS:
            self._observed = time
            for figures in self._registry.figures.told(self._query, self._site):
                yield from controller.observe(figures, time)

    def _answers(
        self, controller: DistributedController, deployed: Deployed, mail: list[Any], time: float
    ) -> Iterator[Action]:
        """What the controller asks for now that tokens have arrived."""
        for content in mail:
            if isinstance(content, dict) and "token" in content:
                try:
                    token = Token.from_json(content["token"], len(deployed.query.aliases))
                except ModelError as problem:
                    logger.warning("query '%s': a message to site %s is rejected: %s", self._query, self._site, problem)
                    continue
                yield from controller.receive(token, time)

    def _send_token(self, message: Send) -> None:
        token = message.content
        assert isinstance(token, Token)
        subject = f"token {token.sequence.head} of {token.round[0]}"
        self._mailbox.send(self._site, message.target, subject, {"token": token.to_json()})

    def _written(self, proposal: Proposal) -> dict[str, Any]:
        return {
            "proposal": {
                "generation": self._generation,
                "planner": proposal.plan.planner,
                "plan": written_of(proposal.plan.solution),
                "reason": proposal.reason,
                "costs": [proposal.cost_before, proposal.cost_after, proposal.once],
            }
        }

    def _proposed(self, content: Any, deployed: Deployed) -> Proposal | None:
        """The proposal of another site; None if a message is none, or about a plan that has been replaced."""
        if not isinstance(content, dict) or "proposal" not in content:
            return None
        try:
            proposal = content["proposal"]
            if proposal["generation"] != deployed.current.number:
                return None
            problem = self._registry.plans.running(deployed).solution.problem
            plan = Deployment(str(proposal["planner"]), solution_of(proposal["plan"], problem))
            before, after, once = map(float, proposal["costs"])
            return Proposal(plan, str(proposal["reason"]), before, after, once)
        except (KeyError, TypeError, ValueError, BraidError) as problem_of_message:
            logger.warning("query '%s': a proposal is rejected: %s", self._query, problem_of_message)
            return None
