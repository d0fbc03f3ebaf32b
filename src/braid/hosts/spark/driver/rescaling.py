"""Rescaling: a checkpoint with the same content for another number of shards or partitions.

The new checkpoint is a copy of the old one, whose logs name the new shards and whose join state was divided anew. Spark
writes that state itself: a short streaming query takes the segments of all shards and puts them into the stores of
the new ones. The stores are then copied under the number of the batch that the old checkpoint has committed last. So
the query goes on with the next batch, and sinks see the numbers they expect.

The old checkpoint is only read. The new one is written under another name and renamed when it is complete.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import FileError
from braid.hosts.spark.driver.checkpoint_files import CheckpointFiles, last_control_offsets, source_offsets
from braid.hosts.spark.driver.checkpoint_state import OPERATOR
from braid.hosts.spark.driver.cluster import shard_labels
from braid.hosts.spark.driver.control import control_offset
from braid.hosts.spark.driver.failures import failure_text
from braid.hosts.spark.driver.local_spark import SETTINGS
from braid.hosts.spark.shared.cache_space import owner_of
from braid.hosts.spark.shared.control_source import UNNUMBERED, spread_table_in
from braid.hosts.spark.shared.state_layout import STATE
from braid.hosts.spark.worker.reshard import CUT_DDL, Cutter, FillOperator
from braid.runtime.fingerprint import Fingerprint, check_fingerprint, differs_in_shards_only
from braid.runtime.manifest import FORMAT, Manifest, check_format
from braid.runtime.query_spec import QuerySpec
from braid.runtime.resharding import Resharder
from braid.runtime.routing import Router, router_for
from braid.runtime.segment_log import MANIFEST
from braid.runtime.spread_table import SpreadTable
from braid.runtime.stored_query import stored_spec

PARTITIONS = "spark.sql.shuffle.partitions"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"

MOST_RECORDS = 64
"""The most segments that a worker gets at once; each may have some megabytes."""

Say = Callable[[str], None]
"""Told what a rescale does now."""


def rescale(
    spark: SparkSession,
    checkpoint: str,
    shards: int,
    *,
    target: str | None = None,
    partitions: int | None = None,
    rates: Mapping[str, float] | None = None,
    say: Say = lambda text: None,
) -> str:
    """Rescale the checkpoint of a query that does not run; returns the path of the new checkpoint.

    Without a `target` the new checkpoint takes the place of the old one, which is kept beside it. `partitions` is the
    new value of `spark.sql.shuffle.partitions`, by default that of the checkpoint. `rates` are those that the streams
    of the query are declared with, by name.
    """
    with _explaining(checkpoint):
        old = _Checkpoint.read(spark, checkpoint)
        spec = _with_shards(old.spec, shards, partitions or old.spec.partitions, rates or {})
        return _Rescaling(spark, old, spec, say).run(target)


def rescale_for(
    spark: SparkSession,
    checkpoint: str,
    wanted: Fingerprint,
    *,
    target: str | None = None,
    say: Say = lambda text: None,
) -> str:
    """The same for a query with the fingerprint `wanted`; that of the checkpoint may have other shards, no more."""
    with _explaining(checkpoint):
        old = _Checkpoint.read(spark, checkpoint)
        if not differs_in_shards_only(old.fingerprint, wanted):
            check_fingerprint(old.fingerprint, wanted)
            raise FileError(f"{old.files.root} has the shards of the query already")
        spec = stored_spec(dict(old.fingerprint) | {"shards": wanted["shards"]})
        return _Rescaling(spark, old, spec, say).run(target)


@contextmanager
def _explaining(checkpoint: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as failure:
        raise FileError(f"{checkpoint} cannot be rescaled: {failure_text(failure)}") from failure


def _with_shards(spec: QuerySpec, shards: int, partitions: int, rates: Mapping[str, float]) -> QuerySpec:
    unknown = rates.keys() - {stream.name for stream in spec.streams}
    if unknown:
        raise FileError(f"the query reads no stream '{sorted(unknown)[0]}'; rates are given by the names of streams")
    by_alias = {source.alias: rates.get(source.declared.name, 1.0) for source in spec.query.inputs}
    router = router_for(spec.query, shards, by_alias)
    return replace(spec, router=router, partitions=partitions, labels=shard_labels(router.shards, partitions))


@dataclass(frozen=True)
class _Checkpoint:
    """A checkpoint of Braid's that nothing runs on.

    `batch` is the last batch it has committed, and `planned` the last one it knows the offsets of, which may be one
    more. `operator` is the number of the join, and `stateful` are the numbers of all stateful operators.
    """

    files: CheckpointFiles
    batch: int
    planned: int
    operator: int
    fingerprint: Fingerprint
    table: SpreadTable
    spec: QuerySpec
    stateful: tuple[int, ...]

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> _Checkpoint:
        files = CheckpointFiles(spark, path)
        batch, planned = (max(_batches(files, log), default=-1) for log in ("commits", "offsets"))
        if not 0 <= batch <= planned <= batch + 1:
            raise FileError(f"{path} has committed no batch; run the query until it has taken a micro-batch")
        offset = control_offset(source_offsets(files, batch))
        if offset is None:
            raise FileError(f"{path} is the checkpoint of a query that is not Braid's")
        check_format(offset.get("format", UNNUMBERED))
        _check_not_running(spark, files, offset)
        operators = spark.read.format("state-metadata").load(path).collect()
        joins = [row["operatorId"] for row in operators if row["operatorName"].startswith(OPERATOR)]
        if len(joins) != 1:
            raise FileError(f"{path} holds {len(joins)} joins of Braid's; only checkpoints of one can be rescaled")
        stateful = tuple(row["operatorId"] for row in operators)
        # Rows may have been routed by the table of a batch that was planned and not committed.
        (last,) = last_control_offsets(spark, path)
        table = SpreadTable.from_json(last["spread"]) if "spread" in last else SpreadTable()
        fingerprint = offset["query"]
        return cls(files, batch, planned, joins[0], fingerprint, table, stored_spec(fingerprint), stateful)

    def entries(self, spark: SparkSession) -> DataFrame:
        """What the stores of all shards hold after the last committed batch."""
        reader = spark.read.format("statestore").option("operatorId", self.operator).option("stateVarName", STATE)
        return (
            reader.option("batchId", self.batch)
            .load(self.files.root)
            .select("key.shard", "user_map_key.source", "user_map_key.number", "user_map_value.payload")
        )

    def check_unchanged(self) -> None:
        if (max(_batches(self.files, "offsets")), max(_batches(self.files, "commits"))) != (self.planned, self.batch):
            raise FileError(f"a query runs on {self.files.root} and has gone on meanwhile; stop it, then rescale")


class _Rescaling:
    def __init__(self, spark: SparkSession, old: _Checkpoint, spec: QuerySpec, say: Say) -> None:
        self._spark = spark
        self._old = old
        self._spec = spec
        self._say = say
        same = old.spec.fingerprint["shards"] == spec.fingerprint["shards"]
        if same:
            raise FileError(f"{old.files.root} has {_shards(spec.router)} and {spec.partitions} partitions already")
        if spec.partitions != old.spec.partitions and len(old.stateful) > 1:
            raise FileError(
                f"{old.files.root} also holds state of Spark's own operators (GROUP BY, dropDuplicates, ..), which "
                f"stays in {old.spec.partitions} partitions; rescale it without another number of partitions"
            )

    def run(self, target: str | None) -> str:
        root = self._old.files.root
        new_root = CheckpointFiles(self._spark, target).root if target is not None else root
        if target is not None and CheckpointFiles(self._spark, new_root).exists():
            raise FileError(f"{target} exists already; name a directory that does not, or remove it")
        token = secrets.token_hex(4)
        unfinished = CheckpointFiles(self._spark, f"{new_root}.unfinished-{token}")
        work = CheckpointFiles(self._spark, f"{new_root}.work-{token}")
        try:
            self._fill(work)
            self._say("copying the rest of the checkpoint")
            self._copy(unfinished, work, new_root)
            self._old.check_unchanged()
            self._put(unfinished, new_root, f"{root}.before-{token}")
            return new_root
        except BaseException:
            unfinished.remove()
            raise
        finally:
            work.remove()

    def _fill(self, work: CheckpointFiles) -> None:
        """Let Spark write the state of the new shards, as the first batch of a checkpoint in `work`."""
        old, spark = self._old, self._spark.newSession()
        settings = {**SETTINGS, PARTITIONS: str(self._spec.partitions), CHANGELOG: "false", RECORDS: str(MOST_RECORDS)}
        for name, value in settings.items():
            spark.conf.set(name, value)
        entries = old.entries(spark)
        self._say("reading the state")
        rows = entries.filter((F.col("source") == MANIFEST[0]) & (F.col("number") == MANIFEST[1])).collect()
        texts = {row["shard"]: bytes(row["payload"]).decode() for row in rows}
        if set(texts) != set(old.spec.labels):
            raise FileError(f"{old.files.root} holds {len(texts)} shards, not {len(old.spec.labels)}; it is damaged")
        before, after = old.spec.to_json(), self._spec.to_json()
        manifests = {shard: Manifest.from_json(texts[label]) for shard, label in enumerate(old.spec.labels)}
        manifest = Resharder(old.spec, self._spec, manifests, old.table).manifest().to_json()
        stored_rows = sum(entry.rows for stored in manifests.values() for entry in stored.all_entries)
        self._say(f"dividing {stored_rows:,} rows of {_shards(old.spec.router)} among {_shards(self._spec.router)}")
        announced = spark.createDataFrame([(label, None) for label in self._spec.labels], CUT_DDL)
        cut = entries.mapInArrow(Cutter(before, after, texts, old.table.to_json()), CUT_DDL).union(announced)
        cut.write.parquet(f"{work.root}/cut")
        self._say("writing the state")
        stream = spark.readStream.schema(CUT_DDL).parquet(f"{work.root}/cut").groupBy("shard")
        filled = stream.transformWithStateInPandas(FillOperator(after, manifest), "shard int", "Append", "None")
        writer = filled.writeStream.format("noop").option("checkpointLocation", f"{work.root}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()

    def _copy(self, new: CheckpointFiles, work: CheckpointFiles, new_root: str) -> None:
        """Copy the old checkpoint, with the new state and logs that name the new shards."""
        old = self._old
        for name in old.files.names():
            if name not in ("offsets", "state"):
                new.copy_from(old.files, name)
        for batch in _batches(old.files, "offsets"):
            new.write(f"offsets/{batch}", self._offsets(old.files.read(f"offsets/{batch}")))
        for operator in old.files.names("state"):
            for name in old.files.names(f"state/{operator}"):
                path = f"state/{operator}/{name}"
                if name == "_metadata":
                    self._copy_metadata(new, path, new_root)
                elif not (name.isdigit() and operator == str(old.operator)):
                    new.copy_from(old.files, path)
        written = max(_batches(work, "checkpoint/commits")) + 1
        for partition in range(self._spec.partitions):
            source = f"checkpoint/state/0/{partition}"
            for name in work.names(source):
                snapshot = re.fullmatch(rf"{written}(_.*)?\.zip", name)
                # Spark names a snapshot by its version, which is the number of the next batch.
                new_name = f"{old.batch + 1}{snapshot[1] or ''}.zip" if snapshot else name
                new.copy_from(work, f"{source}/{name}", f"state/{old.operator}/{partition}/{new_name}")

    def _copy_metadata(self, new: CheckpointFiles, path: str, new_root: str) -> None:
        """Copy Spark's description of an operator, which has the number of partitions and absolute paths."""
        old = self._old.files
        for name in old.all_files(path):
            text = old.read(name).replace(f"{old.root}/", f"{new_root}/")
            new.write(name, re.sub(r'"numPartitions":\d+', f'"numPartitions":{self._spec.partitions}', text))

    def _offsets(self, text: str) -> str:
        """The offsets of a batch, naming the new shards and partitions."""
        version, metadata, *offsets = text.splitlines()
        if version != "v1":
            raise FileError(f"the offsets of {self._old.files.root} have version {version}, which is not supported")
        settings = json.loads(metadata)
        settings["conf"][PARTITIONS] = str(self._spec.partitions)
        return "\n".join([version, json.dumps(settings), *map(self._offset, offsets)])

    def _offset(self, text: str) -> str:
        offset = control_offset([text])
        if offset is None:
            return text
        fingerprint = offset["query"] | {"shards": self._spec.fingerprint["shards"]}
        # In the new shards no key is spread.
        offset.pop("spread", None)
        offset["messages"] = [message for message in offset["messages"] if spread_table_in(message) is None]
        return json.dumps(offset | {"format": FORMAT, "query": fingerprint})

    def _put(self, new: CheckpointFiles, root: str, backup: str) -> None:
        """Give the complete checkpoint its name, and the old one another name if it has this one."""
        old = self._old.files
        in_place = root == old.root
        if in_place and not old.rename(backup):
            raise FileError(f"{root} cannot be renamed to {backup}")
        if not new.rename(root):
            if in_place:
                CheckpointFiles(self._spark, backup).rename(root)
            raise FileError(f"{new.root} cannot be renamed to {root}")
        if in_place:
            self._say(f"the old checkpoint is now {backup}")


def _check_not_running(spark: SparkSession, files: CheckpointFiles, offset: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that a query runs on, as far as this host can tell."""
    for running in spark.streams.active:
        if str(running._jsq.streamingQuery().resolvedCheckpointRoot()) == files.root:
            raise FileError(f"a query runs on {files.root}; stop it, then rescale")
    owner = owner_of(offset["directory"])
    if owner is not None:
        raise FileError(f"a query may run on {files.root}, in process {owner}; end that program, then rescale")


def _batches(files: CheckpointFiles, log: str) -> list[int]:
    return [int(name) for name in files.names(log) if name.isdigit()]


def _shards(router: Router) -> str:
    return f"{router.shards} shard{'' if router.shards == 1 else 's'}"
