import { LinkedAbortController } from '../values/linked-abort-controller.ts'
import { parseJson } from '../values/json.ts'
import { parseChange, type ChangeBatch } from './batch.ts'
import type { Change } from './change.ts'
import { ClientError } from './client-error.ts'
import { EventStreamParser, type ServerEvent } from './event-stream-parser.ts'
import { CHANGES_PATH, type PollOptions } from './poll-pages.ts'
import { parseErrorResponse, translateError, type Query, type Transport } from './transport.ts'

/** The server sends a heartbeat every 15 seconds. */
const SILENCE_MAX_MS = 45_000

export interface StreamOptions extends Pick<PollOptions, 'types' | 'signal'> {
  readonly silenceMaxMs?: number
}

/** Reads server-sent events; events that arrive together form a batch. Never returns: a stream that ends has failed. */
export async function* streamEvents(
  transport: Transport,
  from: Query,
  { types, signal, silenceMaxMs = SILENCE_MAX_MS }: StreamOptions,
): AsyncGenerator<ChangeBatch> {
  const connection = new LinkedAbortController(signal)
  const withTimeout = async <T>(result: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => connection.abort(new Error('the server stopped sending')), silenceMaxMs)
    try {
      return await result
    } catch (error) {
      throw translateError(error, signal, connection.signal)
    } finally {
      clearTimeout(timer)
    }
  }
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    const response = await withTimeout(
      transport.openResponse({
        path: CHANGES_PATH,
        query: { ...from, types },
        accept: 'text/event-stream',
        signal: connection.signal,
      }),
    )
    if (response.body === null || !(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      throw new ClientError('ANSWER_INVALID', 'The response is not an event stream.', {
        status: response.status,
        requestId: response.headers.get('x-request-id') ?? undefined,
      })
    }
    reader = response.body.getReader()
    const [parser, decoder] = [new EventStreamParser(), new TextDecoder()]
    for (;;) {
      // Only reads are timed: a slow consumer does not count as a silent server.
      const { done, value } = await withTimeout(reader.read())
      if (done)
        throw new ClientError('SERVICE_UNAVAILABLE', 'The server closed the stream.', {
          requestId: response.headers.get('x-request-id') ?? undefined,
        })
      const events = parser.push(decoder.decode(value, { stream: true }))
      const errorAt = events.findIndex(({ event }) => event === 'error')
      const batch = collectBatch(errorAt < 0 ? events : events.slice(0, errorAt))
      if (batch !== null) yield batch
      if (errorAt >= 0)
        throw parseErrorResponse(
          events[errorAt]?.data ?? '',
          { status: 200, headers: response.headers },
          transport.clock.now(),
        )
    }
  } finally {
    await reader?.cancel().catch(() => {})
    connection.unlink()
  }
}

function collectBatch(events: readonly ServerEvent[]): ChangeBatch | null {
  const changes: Change[] = []
  let [cursor, upToDate]: [string | null, boolean] = [null, false]
  for (const { id, event, data } of events) {
    if (id === null) continue
    cursor = id
    // An event with an id only marks the end of the available changes.
    upToDate = data === null
    if (data !== null && event === 'change') changes.push(parseChange(parseJson(data)))
  }
  return cursor === null ? null : { changes, cursor, upToDate }
}
