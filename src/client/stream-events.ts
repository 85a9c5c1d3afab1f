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
export async function* streamEvents(wire: Transport, from: Query, { types, signal, silenceMaxMs = SILENCE_MAX_MS }: StreamOptions): AsyncGenerator<ChangeBatch> {
  const listening = new LinkedAbortController(signal)
  const heard = async <T>(answer: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => listening.abort(new Error('the server is silent')), silenceMaxMs)
    try {
      return await answer
    } catch (error) {
      throw translateError(error, signal, listening.signal)
    } finally {
      clearTimeout(timer)
    }
  }
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    const response = await heard(wire.openResponse({ path: CHANGES_PATH, query: { ...from, types }, accept: 'text/event-stream', signal: listening.signal }))
    if (response.body === null || !(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      throw new ClientError('ANSWER_INVALID', 'The answer is not a stream of events.', { status: response.status, requestId: response.headers.get('x-request-id') ?? undefined })
    }
    reader = response.body.getReader()
    const [lines, decoder] = [new EventStreamParser(), new TextDecoder()]
    for (;;) {
      // Only reads are timed: a slow consumer does not count as a silent server.
      const { done, value } = await heard(reader.read())
      if (done) throw new ClientError('SERVICE_UNAVAILABLE', 'The server ended the stream.', { requestId: response.headers.get('x-request-id') ?? undefined })
      const events = lines.push(decoder.decode(value, { stream: true }))
      const failure = events.findIndex(({ event }) => event === 'error')
      const batch = collectBatch(failure < 0 ? events : events.slice(0, failure))
      if (batch !== null) yield batch
      if (failure >= 0) throw parseErrorResponse(events[failure]!.data ?? '', { status: 200, headers: response.headers }, wire.clock.now())
    }
  } finally {
    await reader?.cancel().catch(() => {})
    listening.unlink()
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
