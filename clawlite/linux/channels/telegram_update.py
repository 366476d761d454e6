"""What an update of the Bot API says (telegram.py), without I/O.

1. The actor is the person who wrote, in private chats and in groups.  A message on behalf of a
   chat (an anonymous admin, a channel) or of another bot has no such person, and is ignored.
2. Only new messages count.  An edited message was acted on already, so the edit is ignored.
3. A service message (somebody joined, a title changed) and each part of an album are ignored.  One
   thing else that is no text is told to be unreadable, in private chats.
4. A command may carry the name of the bot that it is for: ``/approve@garden_bot 1``.  One for
   another bot is ignored.
"""

# what a person may send instead of a text
CONTENTS = (
    "animation",
    "audio",
    "checklist",
    "contact",
    "dice",
    "document",
    "game",
    "location",
    "paid_media",
    "photo",
    "poll",
    "sticker",
    "story",
    "venue",
    "video",
    "video_note",
    "voice",
)
MAX_THREAD = 1 << 53


class Incoming:
    """One message of a person.

    actor    id of the person;  chat: id of the chat, the same in a private one;  is_group: bool
    text     str, or None for something else, which its sender is to be told
    thread   id of the topic of a group, or None;  message: id in the chat, or None
    date     epoch seconds when it was sent, by the clock of Telegram, or None
    """

    def __init__(self, actor: str, chat: str, text, message: dict):
        self.actor, self.chat, self.text = actor, chat, text
        self.is_group = chat.startswith("-")
        thread, number = message.get("message_thread_id"), message.get("message_id")
        self.thread = thread if message.get("is_topic_message") is True else None
        self.thread = self.thread if is_int(self.thread) else None
        self.message = number if is_int(number) else None
        self.date = message.get("date") if is_int(message.get("date")) else None


def read(message, bot: str):
    """Return what *message*, the field of an update, says: an ``Incoming``, or None when it is
    ignored.

    bot  the name of this bot without "@", "" while it is not known
    """
    chat = message.get("chat") if isinstance(message, dict) else None
    if not isinstance(chat, dict) or not is_int(chat.get("id")) or chat.get("type") == "channel":
        return None
    name, sender = str(chat["id"]), message.get("from")
    if chat["id"] > 0:
        actor = name  # the id of a private chat is that of its person
    elif (
        isinstance(sender, dict)
        and is_int(sender.get("id"))
        and sender.get("is_bot") is not True
        and "sender_chat" not in message
    ):
        actor = str(sender["id"])
    else:
        return None
    text = message.get("text")
    if isinstance(text, str):
        text = strip_address(text, bot)
        return None if text is None else Incoming(actor, name, text, message)
    if (
        chat["id"] < 0
        or "media_group_id" in message
        or not any(field in message for field in CONTENTS)
    ):
        return None
    return Incoming(actor, name, None, message)


def read_migration(message):
    """Return (old id, new id) of a group that became a supergroup, or None."""
    chat = message.get("chat") if isinstance(message, dict) else None
    if isinstance(chat, dict) and is_int(chat.get("id")):
        if is_int(message.get("migrate_to_chat_id")):
            return str(chat["id"]), str(message["migrate_to_chat_id"])
        if is_int(message.get("migrate_from_chat_id")):
            return str(message["migrate_from_chat_id"]), str(chat["id"])
    return None


def strip_address(text: str, bot: str):
    """Return *text* without the name of this bot at its beginning; None when it is a command for
    another bot.
    """
    first = text.split(None, 1)[0] if text.split() else ""
    command, at, name = first.partition("@")
    if at and name and name.isascii() and name.replace("_", "").isalnum():
        is_ours = not bot or name.lower() == bot.lower()
        if len(command) > 1 and command[0] == "/":
            return command + text.lstrip()[len(first) :] if is_ours else None
        if not command and bot and is_ours and len(text.split()) > 1:
            return text.split(None, 1)[1]
    return text


def is_int(value) -> bool:
    """Return whether *value* is a number that Telegram may have given (at most 52 bits)."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_THREAD


def seconds_of(date: str):
    """Return the epoch seconds of an HTTP date such as ``Sun, 06 Nov 1994 08:49:37 GMT`` (RFC
    9110, 5.6.7), or None.
    """
    from datetime import datetime, timezone

    months = ("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec").split()
    try:
        _, day, month, year, time, _ = date.split(" ")
        hour, minute, second = [int(part) for part in time.split(":")]
        whole = datetime(
            int(year), months.index(month) + 1, int(day), hour, minute, min(second, 59)
        )
    except (ValueError, OverflowError):
        return None
    return int(whole.replace(tzinfo=timezone.utc).timestamp())
