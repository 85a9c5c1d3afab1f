import { useEffect, useRef, useState } from 'react'
import type { ChangeDocument } from '../../src/server/console/documents.ts'
import { ApiError, sendRequest } from './api.ts'
import { parseExact } from './exact-json.ts'

export type LiveState = 'connecting' | 'live' | 'broken' | 'refused'

const CHANGES_MAX = 300
/** Minimum time between two renders. */
const RENDER_INTERVAL_MS = 250
const RETRY_MS = 2_000

/** The newest changes first, while the page is open. Resumes after a disconnect. */
export function useLiveChanges(types: string): {
  changes: readonly ChangeDocument[]
  state: LiveState
  error: Error | null
} {
  const [changes, setChanges] = useState<readonly ChangeDocument[]>([])
  const [state, setState] = useState<LiveState>('connecting')
  const [error, setError] = useState<Error | null>(null)
  const pending = useRef<ChangeDocument[]>([])

  useEffect(() => {
    const closed = new AbortController()
    pending.current = []
    setChanges([])
    const draw = setInterval(() => {
      if (pending.current.length === 0) return
      const newest = pending.current.toReversed()
      pending.current = []
      setChanges((before) => [...newest, ...before].slice(0, CHANGES_MAX))
    }, RENDER_INTERVAL_MS)
    void followFeed(types, closed.signal, {
      onChange: (change) => void pending.current.push(change),
      onState: (next, cause) => {
        setState(next)
        setError(cause)
      },
    })
    return () => {
      closed.abort()
      clearInterval(draw)
    }
  }, [types])
  return { changes, state, error }
}

interface FeedListener {
  onChange(change: ChangeDocument): void
  onState(state: LiveState, cause: Error | null): void
}

/** Uses fetch, because EventSource cannot send a key. */
async function followFeed(types: string, signal: AbortSignal, { onChange, onState }: FeedListener): Promise<void> {
  let cursor = ''
  while (!signal.aborted) {
    try {
      const query = new URLSearchParams({ ...(types !== '' && { types }) })
      const response = await sendRequest(`/console/api/changes?${query}`, {
        signal,
        headers: { accept: 'text/event-stream', ...(cursor !== '' && { 'last-event-id': cursor }) },
      })
      onState('live', null)
      for await (const { id, event, data } of response.body === null ? [] : readEvents(response.body)) {
        if (event === 'change') onChange(parseExact(data) as ChangeDocument)
        if (id !== '') cursor = id
      }
    } catch (cause) {
      if (signal.aborted) return
      const isRefused = cause instanceof ApiError && (cause.status === 401 || cause.status === 403)
      onState(isRefused ? 'refused' : 'broken', cause as Error)
      if (isRefused) return
    }
    if (!signal.aborted) onState('broken', null)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

async function* readEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<{ id: string; event: string; data: string }> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string): string =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2) ?? ''
      yield { id: field('id'), event: field('event'), data: field('data') }
    }
  }
}
