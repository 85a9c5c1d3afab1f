import { inFile, type PlantedBug } from './planted-bug.ts'

const HTTP_SUITE = ['test/destinations/http.test.ts']
const HTTP = ['test/destinations/http-requests.test.ts']

const KAFKA = ['test/destinations/kafka-topics.test.ts']
const KAFKA_SUITE = ['test/destinations/kafka.test.ts']

/** The destinations that acknowledge: HTTP and Kafka. */
export const STREAM_BUGS: readonly PlantedBug[] = [
  ...inFile('src/destinations/http/destination.ts', HTTP, [
    ['a response without the token counts', 'if (!isAcknowledged(answer.position, batch, step))', 'if (false)'],
    ['the epoch of the response is not compared', 'stored.epoch === next.epoch &&', ''],
    ['a refused part is skipped', "if (outcome === 'refused') return 'refused'", ''],
    ['413 stops the destination', 'if (batch.changes.length < 2)', 'if (batch.changes.length >= 0)'],
    ['rows are sent unencrypted', '!allowHttp && !LOOPBACK_PATTERN.test(url.hostname)', 'false'],
    ['a short secret is accepted', 'if (bytes < 24 || bytes > 64)', 'if (bytes > 64)'],
    ['the signature can be overwritten', 'webhook-.*|', ''],
    ['the mode is not compared', 'stored.live === null || stored.mode === mode', 'true'],
    [
      'a removal without its tokens',
      'const position = await this.position(database)',
      'const position = { live: null, loading: null }',
    ],
  ]),
  ...inFile('src/destinations/http/client.ts', HTTP, [
    ['a full disk is not reported', "  507: 'DESTINATION_FULL',\n", ''],
    [
      'a rejected secret is retried',
      "status >= 500 ? 'DESTINATION_UNAVAILABLE'",
      "status >= 400 ? 'DESTINATION_UNAVAILABLE'",
    ],
    ['the requested wait is ignored', 'wait === undefined ? {} : { retryAfterMs: wait }', '{}'],
    ['a receiver that hangs blocks forever', 'signal: sending.signal,', 'signal: this.#signal,'],
  ]),
  ...inFile(
    'src/destinations/http/split-batch.ts',
    HTTP,
    [
      ['every part completes the load', 'isLast: false, changes', 'changes'],
      ['every part begins the load', 'isFirst: false, changes', 'changes'],
      ['the parts share a token', 'step: { previous: step.previous, next: between }', 'step'],
      ['a part of a load has no key', '{ ...next, after: last.key }', 'next'],
    ],
    'each part of a batch',
  ),
  ...inFile(
    'src/destinations/http/wire.ts',
    HTTP_SUITE,
    [
      [
        'the text of a record is cut',
        'line.slice(at + RECORD.length, -1)',
        "line.slice(at + RECORD.length, -1).replaceAll(/(?<=[0-9]{17})[0-9]/g, '0')",
      ],
    ],
    'every value is kept',
  ),
  ...inFile('src/destinations/http/wire.ts', HTTP, [
    ['any name is accepted', "throw malformedError('name')", 'return text'],
  ]),
  ...inFile('src/destinations/http/receiver.ts', HTTP, [
    ['the order is not checked', 'if (!isNextStep(stored, batch, step)) return respond(409, stored)', ''],
    [
      'a late removal deletes newer rows',
      'serializePosition({ ...stored, ...message.position }) !== serializePosition(stored)',
      'false',
    ],
    ['the token is not stored', 'await options.writeTokens(transaction, name, serializePosition(applied))', ''],
    ['requests run at once', 'const result = last.then(work)', 'const result = work()'],
    ['any size is read', 'if (rawBody === null) return respond(413)', 'if (rawBody === null) return respond(401)'],
  ]),
  ...inFile('src/destinations/loop/run-destination.ts', HTTP, [
    ['the wait of a destination is dropped', '...(retryAfterMs !== undefined && { retryAfterMs })', ''],
  ]),
  ...inFile('src/destinations/kafka/topic-writer.ts', KAFKA, [
    ['keys that are gone stay', 'isLast && loadStart !== null &&', 'false &&'],
    [
      'rows of the last transaction are not waited for',
      'if ([...this.#ends].every(([at, end]) => (bounds[at]?.end ?? -1n) >= end)) return bounds',
      'return bounds',
    ],
    [
      'lost messages are not noticed',
      'this.#isLost = !ends.every((end, at) => (bounds[at]?.end ?? -1n) >= BigInt(end))',
      'this.#isLost = false',
    ],
    [
      'a key moves when partitions are added',
      'this.#isLost ? bounds.length : (this.#state?.partitions ?? bounds.length)',
      'bounds.length',
    ],
    ['messages of others are accepted', 'if (bounds.some(({ low, end }) => end > low))', 'if (false)'],
    ['the mode is not compared', 'this.mode !== null && this.mode !== mode', 'false'],
    ['every batch has its schema', 'if (before?.schema === fingerprint) return [position]', ''],
    [
      'a load keeps its number',
      'const load = isFirst ? step.next.epoch : (before?.load ?? 0)',
      'const load = before?.load ?? 1',
    ],
  ]),
  ...inFile('src/destinations/kafka/topic-writer.ts', KAFKA_SUITE, [
    [
      'the token is not compared',
      "if (!isNextStep(this.position, batch, step)) return 'refused'",
      '',
      KAFKA_SUITE,
      'two appliers',
    ],
    [
      'without transactions the position is not read again',
      'if (!this.#isTransactional) await this.#readState()',
      '',
      KAFKA,
      'without transactions',
    ],
  ]),
  ...inFile('src/destinations/kafka/topic-producer.ts', KAFKA, [
    ['a fenced batch is repeated', "if (isFenced(error)) return { kind: 'fenced' }\n      // Readers", '// Readers'],
    ['a message that is too large is sent forever', 'if (!isDivisible)', 'if (false)'],
    ['the size of batches stays', 'this.#limit.bytesMax = Math.ceil(Math.min(this.#limit.bytesMax, bytes) / 2)', ''],
  ]),
  ...inFile('src/destinations/kafka/topic-producer.ts', KAFKA_SUITE, [
    [
      'the position is read before the producer is initialized',
      'if (isTransactional) opened.#transaction = await producer.transaction()',
      '',
      KAFKA,
      'an unfinished transaction',
    ],
    [
      'the rows are outside the transaction',
      'await this.#send(transaction ?? this.#producer, [{ topic: rows.topic, messages }], messages.length > 1)',
      'await this.#send(this.#producer, [{ topic: rows.topic, messages }], messages.length > 1)',
      KAFKA_SUITE,
      'Kafka destination.*statements of a batch',
    ],
  ]),
  ...inFile('src/destinations/kafka/find-vanished-keys.ts', KAFKA, [
    [
      'keys of other shares have vanished',
      'hashed !== null && isInShare(hashed) && written.add(hashed)',
      'hashed !== null && written.add(hashed)',
    ],
    [
      'the load begins at the start of the topic',
      '({ low: start, end: bounds[at]?.end ?? start })',
      '({ low: 0n, end: bounds[at]?.end ?? start })',
    ],
  ]),
  ...inFile('src/destinations/kafka/topic-reader.ts', KAFKA, [
    ['an open transaction is not noticed', 'if (BigInt(highWatermark) > end)', 'if (false)'],
    [
      'aborted messages are read',
      'yield filterCommitted(answer).filter(',
      'yield answer.messages.filter(',
      KAFKA,
      'an unfinished transaction',
    ],
  ]),
  ...inFile('src/destinations/kafka/topic-admin.ts', KAFKA, [
    ['any policy is accepted', 'if (policy !== expected)', 'if (false)'],
    ['a mirror is not compacted', "mirror: { [CLEANUP_POLICY]: 'compact' }", "mirror: { [CLEANUP_POLICY]: 'delete' }"],
  ]),
  ...inFile('src/destinations/kafka/session.ts', KAFKA, [
    ['topics of others are deleted', 'if (writer.hasState) for', 'for'],
  ]),
  ...inFile('src/destinations/kafka/key-set.ts', KAFKA, [
    ['a larger set forgets its keys', 'if (!isEmpty(key, 0)) insert(this.#slots, key)', ''],
  ]),
  ...inFile('src/destinations/kafka/failures.ts', KAFKA, [
    ['a full broker is not reported', "  KAFKA_STORAGE_ERROR: 'DESTINATION_FULL',\n", ''],
  ]),
]
