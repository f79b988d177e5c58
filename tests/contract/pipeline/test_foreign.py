"""Others who know only the tables and the envelope: a row by SQL, a message by a plain AMQP client."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

import aiormq
import asyncpg

from attune.kernel.configuration import load_settings
from tests.contract.pipeline.world import World

ROW = """
    INSERT INTO attune.enforcement (rule, rule_ref, trigger_ref, config, payload)
    VALUES ($1, $2, 'shop.order', '{}', '{"name": "Ann"}') RETURNING id
"""


async def test_an_enforcement_written_and_announced_by_others_becomes_an_execution(
    migrated_url: str, rabbitmq_url: str, tmp_path: Path
) -> None:
    settings = load_settings(
        {
            "ATTUNE__DATA_DIR": str(tmp_path),
            "ATTUNE__DATABASE__URL": migrated_url,
            "ATTUNE__MESSAGE_QUEUE__URL": rabbitmq_url,
        }
    )
    async with World(settings) as world:
        await world.start_worker()
        await world.start_executor()
        rule = await world.rule(action_params={"message": "hello {{ event.payload.name }}"})
        database = await asyncpg.connect(migrated_url)
        enforcement = await database.fetchval(ROW, rule.id, rule.ref)
        await database.close()
        envelope = {
            "message_id": str(uuid.uuid4()),
            "message_type": "enforcement.created",
            "version": 1,
            "source": "somebody",
            "timestamp": datetime.now(UTC).isoformat(),
            "payload": {"enforcement_id": enforcement},
        }
        broker = await aiormq.connect(rabbitmq_url)
        channel = await broker.channel()
        for _ in range(2):
            await channel.basic_publish(
                json.dumps(envelope).encode(),
                exchange="attune.executions",
                routing_key="enforcement.created",
            )
        ended = await world.ended(await world.first_execution())
        await broker.close()
        assert ended.enforcement == enforcement
        assert ended.config == {"message": "hello Ann"}
        await world.over()
        assert await world.value(int, "SELECT count(*) FROM execution") == 1
