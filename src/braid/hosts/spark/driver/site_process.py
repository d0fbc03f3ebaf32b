"""One site of a network file at work: its streams, its part in every deployment, and the results that are wanted there.

A site may come later than others, stop, and go on from its checkpoints. What others publish meanwhile waits for it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from braid.errors import BraidError, FileError, reason_of
from braid.files.job import FILE_FORMATS, SourceEntry
from braid.files.network import NetworkFile, NetworkQueryEntry
from braid.hosts.announced import Deployments
from braid.hosts.network_channels import channels_of_file
from braid.hosts.spark.driver.checkpoint_removal import begin_checkpoint, mark_left, remove_left
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.earlier_results import check_results
from braid.hosts.spark.driver.failures import SPARK_FAILURES, error_for, failure_text
from braid.hosts.spark.driver.job_runner import check_columns, read_stream
from braid.hosts.spark.driver.network import Network
from braid.runtime.sites.deployed import Deployed


class SiteProcess:
    """Runs a site until it is stopped. The program calls `look` again and again."""

    def __init__(self, file: NetworkFile, name: str, spark: SparkSession) -> None:
        self._file = file
        self.name = name
        file.topology.position(name)
        self._lock = _lock(file.directory, name)
        self.network = Network(
            file.topology,
            directory=file.directory,
            channels=channels_of_file(file),
            trigger=file.trigger_text,
            adapt=file.adapt,
            controller=file.controller,
        )
        self.network.follow(file)
        self._site = self.network.site(name, spark)
        self._outputs: dict[str, Any] = {}
        """Spark's queries that write results, by the name of the query."""
        for entry in file.streams_at(name):
            self._declare(entry)

    def _declare(self, entry: SourceEntry) -> None:
        check_columns(entry)
        try:
            self._site.stream(entry.name, _stream(self._site.spark, entry), time=entry.time, lateness=entry.lateness)
        except (BraidError, PySparkException, Py4JError) as failure:
            raise entry.location.error(f"stream '{entry.name}': {failure_text(failure)}") from failure

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that start here."""
        return tuple(self._site.dataframes)

    def look(self) -> list[str]:
        """Start what has been deployed since the last look, stop what is dropped, and raise the error of what failed.

        Returns the names of the queries that were started.
        """
        self.network.answer()
        dropping = self.network.drops.asked()
        deployments = self.network.registry.deployments()
        self._leave(dropping, deployments)
        running = {query.name for query in self.network.queries}
        started = []
        for name, deployed in deployments.items():
            entry = next((entry for entry in self._file.queries if entry.name == name), None)
            wanted_here = entry is not None and entry.sink == self.name and entry.output is not None
            if name in running | dropping or not (self.name in deployed.sites or wanted_here):
                continue
            query = self.network.run(deployed, sink=self.name)
            if entry is not None and wanted_here and not deployed.is_dropped:
                self._outputs[name] = self._write(query, entry)
            started.append(name)
        self._check()
        return started

    def _leave(self, dropping: frozenset[str], deployments: Deployments) -> None:
        """Stop queries that are being dropped. Their checkpoints go when nothing of them is left for this site."""
        ending = [deployments[name] for name in dropping & deployments.keys()]
        # A drop does not wait for a site that only writes results: the query may be gone already.
        for query in self.network.queries:
            is_asked = query.name in dropping and deployments.is_unreadable(query.name)
            if is_asked or deployments.is_gone(query.deployed):
                ending.append(query.deployed)
        for deployed in ending:
            if deployed.name in self._outputs:
                self._outputs.pop(deployed.name).stop()
            if any(entry.name == deployed.name and entry.sink == self.name for entry in self._file.queries):
                mark_left(self._results(deployed))
            self.network.leave(deployed)
        self.network.remove_left()
        kept = {self._results(deployed) for deployed in deployments.values() if not deployed.is_dropped}
        if not deployments.unreadable:
            remove_left(self._file.directory / "results", kept)

    def _results(self, deployed: Deployed) -> Path:
        """The checkpoint of what writes the results of a query."""
        return self._file.directory / "results" / deployed.unique_name

    def _write(self, query: DeployedQuery, entry: NetworkQueryEntry) -> Any:
        assert entry.output is not None
        writer = query.dataframe.writeStream.format(entry.output.format).options(**entry.output.options)
        if self._file.trigger_text is not None:
            writer = writer.trigger(processingTime=self._file.trigger_text)
        checkpoint = self._results(query.deployed)
        check_results(self._site.spark, entry.name, entry.output, str(checkpoint))
        begin_checkpoint(checkpoint)
        try:
            return writer.queryName(entry.name).option("checkpointLocation", str(checkpoint)).start()
        except (PySparkException, Py4JError) as failure:
            raise entry.output.location.error(f"query '{entry.name}': {failure_text(failure)}") from failure

    def _check(self) -> None:
        for query in self.network.queries:
            query.check()
        for name, output in self._outputs.items():
            failure = output.exception()
            if failure is not None:
                raise error_for(f"the results of query '{name}' cannot be written", failure) from failure

    def stop(self) -> None:
        self.network.stop()
        for output in self._outputs.values():
            with suppress(*SPARK_FAILURES):
                output.stop()
        self._lock.close()


def _stream(spark: SparkSession, entry: SourceEntry) -> DataFrame:
    """The DataFrame of a stream. Files that are there already tell the columns of a stream without a schema."""
    path = entry.options.get("path")
    if entry.schema is not None or path is None or entry.format.lower() not in FILE_FORMATS:
        return read_stream(spark, entry)
    columns = spark.read.format(entry.format).options(**entry.options).load().schema
    return spark.readStream.format(entry.format).options(**entry.options).schema(columns).load()


def _lock(directory: Path, site: str) -> IO[str]:
    """A lock on the checkpoints of a site, which ends with this process however it ends."""
    path = directory / "sites" / f"{site}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BraidError(
            f"another process runs site '{site}' on {directory}; stop it first, or give this one another directory"
        ) from error
    except OSError as error:
        raise FileError(f"cannot write to the directory of the network, {directory}: {reason_of(error)}") from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
