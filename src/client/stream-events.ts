import { Following } from '../values/following.ts'
import { parseJson } from '../values/json.ts'
import { changeOf, type Batch } from './batch.ts'
import type { Change } from './change.ts'
import { ClientError } from './client-error.ts'
import { EventLines, type ServerEvent } from './event-lines.ts'
import { CHANGES_PATH, type PageOptions } from './poll-pages.ts'
import { errorOf, translated, type Query, type Wire } from './wire.ts'

/** The server lets itself be heard every 15 seconds. */
const SILENCE_MAX_MS = 45_000

export interface StreamOptions extends Pick<PageOptions, 'types' | 'signal'> {
  readonly silenceMaxMs?: number
}

/** The same as server-sent events: what arrives together is a batch. Never ends by itself; a stream that ends has failed. */
export async function* streamEvents(wire: Wire, from: Query, { types, signal, silenceMaxMs = SILENCE_MAX_MS }: StreamOptions): AsyncGenerator<Batch> {
  const listening = new Following(signal)
  const heard = async <T>(answer: Promise<T>): Promise<T> => {
    const timer = setTimeout(() => listening.abort(new Error('the server is silent')), silenceMaxMs)
    try {
      return await answer
    } catch (error) {
      throw translated(error, signal, listening.signal)
    } finally {
      clearTimeout(timer)
    }
  }
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    const response = await heard(wire.open({ path: CHANGES_PATH, query: { ...from, types }, accept: 'text/event-stream', signal: listening.signal }))
    if (response.body === null || !(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      throw new ClientError('ANSWER_INVALID', 'The answer is not a stream of events.', { status: response.status, requestId: response.headers.get('x-request-id') ?? undefined })
    }
    reader = response.body.getReader()
    const [lines, decoder] = [new EventLines(), new TextDecoder()]
    for (;;) {
      // Only here is the time counted: a slow consumer is not a silent server.
      const { done, value } = await heard(reader.read())
      if (done) throw new ClientError('SERVICE_UNAVAILABLE', 'The server ended the stream.', { requestId: response.headers.get('x-request-id') ?? undefined })
      const events = lines.push(decoder.decode(value, { stream: true }))
      const failure = events.findIndex(({ event }) => event === 'error')
      const batch = gather(failure < 0 ? events : events.slice(0, failure))
      if (batch !== null) yield batch
      if (failure >= 0) throw errorOf(events[failure]!.data ?? '', { status: 200, headers: response.headers }, wire.clock.now())
    }
  } finally {
    await reader?.cancel().catch(() => {})
    listening.letGo()
  }
}

function gather(events: readonly ServerEvent[]): Batch | null {
  const changes: Change[] = []
  let [cursor, upToDate]: [string | null, boolean] = [null, false]
  for (const { id, event, data } of events) {
    if (id === null) continue
    cursor = id
    // A place and nothing else: so far there is no more.
    upToDate = data === null
    if (data !== null && event === 'change') changes.push(changeOf(parseJson(data)))
  }
  return cursor === null ? null : { changes, cursor, upToDate }
}
