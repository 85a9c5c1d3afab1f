import type { SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'kafka.md',
  auth: 'None, TLS certificates, or SASL; the account needs Describe and Read on the topics.',
  streams: [
    ['kafka(options).topic(name, options)', 'backfill and delta', 'the last value of every key, by offsets'],
    ['kafka(options).listing(name, options)', 'replace', 'all messages that the topic retains'],
  ],
  lag: 'None: offsets are final.',
  retention: 'The retention of the topic; `tombstonesMs` for the deletions of a compacted one.',
  deletions: 'Messages without a value; with `listing` the sweep.',
  pace: 'By the quotas of the brokers.',
  groups: [
    {
      title: 'kafka(options)',
      file: 'kafka/connect.ts',
      name: 'KafkaOptions',
      members: {
        brokers: [
          null,
          '`host:port` of some brokers: a list, a text with commas, or the name of the secret that holds it.',
        ],
        ssl: ['false', 'TLS: true, or certificates as PEM.'],
        sasl: ['none', '`plain`, `scram-sha-256`, `scram-sha-512` or `oauthbearer`, with its secrets.'],
        clientId: ['`tidemark`', 'Name in the logs and quotas of the brokers.'],
      },
    },
    {
      title: 'topic(name, options), listing(name, options)',
      file: 'kafka/source.ts',
      name: 'TopicOptions',
      members: {
        since: [
          'none',
          'The start date, such as `2024-01-31`: reading begins at the first message of each partition with this time or a later one.',
        ],
        tombstonesMs: [
          'no limit',
          '`delete.retention.ms` of a compacted topic: after a longer absence the topic is read from the beginning.',
        ],
        pageSize: ['10000', 'Messages of a page.'],
        pageBytes: ['8000000', 'Bytes of keys and values; a page ends with the message that exceeds it.'],
      },
    },
    {
      title: 'topic(name, options), the message',
      file: 'kafka/message.ts',
      name: 'MessageOptions',
      members: {
        include: ['none', 'Metadata to add to the record: `partition`, `offset`, `timestamp`, `headers`.'],
        decode: [
          'JSON',
          'Function from the bytes of a value to the record. An exception puts the message in quarantine.',
        ],
      },
    },
  ],
} satisfies SourceReference
