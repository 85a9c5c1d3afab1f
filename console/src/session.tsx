import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useState, type FormEvent, type ReactNode } from 'react'
import type { SessionDocument } from '../../src/server/console/documents.ts'
import { ApiError, get, apiKeyStorage } from './api.ts'
import { ErrorMessage, Loading } from './components/query-states.tsx'

interface SessionState {
  readonly session: SessionDocument
  /** Whether the key or local access has the scope. */
  hasScope(scope: string): boolean
  /** Asks for a key where local access is not sufficient. */
  signIn(): void
  signOut(): void
}

const SessionContext = createContext<SessionState | null>(null)

export function useSession(): SessionState {
  const session = useContext(SessionContext)
  if (session === null) throw new Error('useSession is used outside of SessionGate')
  return session
}

/** Loads the session. Local access needs no key; otherwise the login form is shown. */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const query = useQuery({
    queryKey: ['session'],
    queryFn: () => get<{ data: SessionDocument }>('/console/api/session'),
    staleTime: Infinity,
  })
  const [isSigningIn, setIsSigningIn] = useState(false)
  const signOut = (): void => {
    apiKeyStorage.clear()
    client.clear()
    void query.refetch()
  }
  if (isSigningIn) {
    const onKey = (): void => {
      setIsSigningIn(false)
      void query.refetch()
    }
    return <Login why="This requires a key, even on this machine." refused={null} onKey={onKey} />
  }
  if (query.data !== undefined && query.error === null) {
    const session = query.data.data
    const hasScope = (scope: string): boolean =>
      session.scopes.includes('admin') ||
      session.scopes.includes(scope) ||
      (scope === 'sync:read' && session.scopes.includes('sync:write'))
    return (
      <SessionContext value={{ session, hasScope, signIn: () => setIsSigningIn(true), signOut }}>
        {children}
      </SessionContext>
    )
  }
  if (
    query.error instanceof ApiError &&
    (query.error.status === 401 || (query.error.status === 403 && apiKeyStorage.get() !== null))
  )
    return (
      <Login
        why="This server requires a key."
        refused={apiKeyStorage.get() === null ? null : query.error}
        onKey={() => void query.refetch()}
      />
    )
  return (
    <main id="main" className="gate">
      {query.error === null ? (
        <Loading what="Connecting to the server" />
      ) : (
        <ErrorMessage error={query.error} onRetry={() => void query.refetch()} />
      )}
    </main>
  )
}

function Login({ why, refused, onKey }: { why: string; refused: Error | null; onKey: () => void }) {
  const [text, setText] = useState('')
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    apiKeyStorage.set(text.trim())
    onKey()
  }
  return (
    <main id="main" className="gate">
      <form className="login" onSubmit={submit}>
        <svg className="login-mark" viewBox="0 0 28 20" aria-hidden="true">
          <path className="brand-line" d="M2 5h24" />
          <path
            className="brand-wave"
            d="M0 14c3.500 0 3.500-2.600 7-2.600s3.500 2.600 7 2.600 3.500-2.600 7-2.600 3.500 2.600 7 2.600v6H0z"
          />
        </svg>
        <h1>Tidemark</h1>
        <p>{why} The key is stored in this tab only, until you close it.</p>
        <label htmlFor="key">API key</label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          placeholder="tmk_…"
          value={text}
          onChange={(event) => setText(event.target.value)}
          aria-invalid={refused !== null}
          aria-describedby="key-help"
        />
        {refused !== null && (
          <p className="field-error" role="alert">
            {refused.message}
          </p>
        )}
        <button type="submit" className="primary">
          Sign in
        </button>
        <p id="key-help" className="quiet">
          <code>tidemark keys create console --scopes admin</code> creates one. <code>sync:read</code> is sufficient for
          read access.
        </p>
      </form>
    </main>
  )
}
