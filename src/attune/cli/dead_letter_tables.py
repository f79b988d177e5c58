"""What is shown of dead letters."""

from attune.cli.rendering import Column
from attune.client.dead_letters import DeadLetter, DeadLetterSummary

LETTER_COLUMNS: list[Column[DeadLetterSummary]] = [
    Column("ID", lambda each: each.id, right=True),
    Column("QUEUE", lambda each: each.queue),
    Column("TYPE", lambda each: each.message_type),
    Column("REASON", lambda each: each.reason),
    Column("ERROR", lambda each: each.error),
    Column("BYTES", lambda each: each.size_bytes, right=True),
    Column("DIED", lambda each: each.died_at),
    Column("REPLAYED", lambda each: each.replayed_at),
]


def letter_fields(letter: DeadLetter) -> list[tuple[str, object]]:
    return [
        ("Dead letter", letter.id),
        ("Queue", letter.queue),
        ("Reason", letter.reason),
        ("Error", letter.error),
        ("Message", letter.message_id),
        ("Type", letter.message_type),
        ("Retries", letter.retry_count),
        ("Bytes", letter.size_bytes),
        ("Died", letter.died_at),
        ("Kept", letter.created),
        ("Replayed", letter.replayed_at),
        ("Replayed by", letter.replayed_by),
        ("Replays", letter.replay_count),
    ]
