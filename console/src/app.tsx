import { useIsFetching, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, type ReactNode } from 'react'
import { Link, Route, Router, Switch, useLocation } from 'wouter'
import { apiKeyStorage } from './api.ts'
import { Dialog } from './components/dialog.tsx'
import { EmptyState } from './components/query-states.tsx'
import { focusSearch, useShortcuts } from './keyboard.ts'
import { AccessPage } from './pages/access.tsx'
import { AuditPage } from './pages/audit.tsx'
import { ConnectionsPage } from './pages/connections.tsx'
import { DatabasePage } from './pages/database.tsx'
import { DatabasesPage } from './pages/databases.tsx'
import { DestinationsPage } from './pages/destinations.tsx'
import { FeedPage } from './pages/feed.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { QuarantinePage } from './pages/quarantine.tsx'
import { RecordPage } from './pages/record.tsx'
import { SourcesPage } from './pages/sources.tsx'
import { SyncPage } from './pages/sync.tsx'
import { WebhooksPage } from './pages/webhooks.tsx'
import { SessionGate, useSession } from './session.tsx'
import { ThemeSwitch } from './theme.tsx'

const PAGES = [
  ['/', 'Overview'],
  ['/databases', 'Databases'],
  ['/feed', 'Feed'],
  ['/connections', 'Connections'],
  ['/destinations', 'Destinations'],
  ['/webhooks', 'Webhooks'],
  ['/quarantine', 'Quarantine'],
  ['/access', 'Access'],
  ['/audit', 'Audit'],
  ['/sources', 'Sources'],
] as const

export function App() {
  return (
    <Router base="/console">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <SessionGate>
        <Shell>
          <Switch>
            <Route path="/">
              <OverviewPage />
            </Route>
            <Route path="/syncs/:worker/:sync">
              {() => {
                const [worker = '', sync = ''] = parsePathNames()
                return <SyncPage key={`${worker}/${sync}`} worker={worker} sync={sync} />
              }}
            </Route>
            <Route path="/databases">
              <DatabasesPage />
            </Route>
            <Route path="/databases/:database">
              {() => {
                const [database = ''] = parsePathNames()
                return <DatabasePage key={database} name={database} />
              }}
            </Route>
            <Route path="/databases/:database/:record">
              {() => {
                const [database = '', record = ''] = parsePathNames()
                return <RecordPage key={`${database}/${record}`} database={database} id={record} />
              }}
            </Route>
            <Route path="/feed">
              <FeedPage />
            </Route>
            <Route path="/connections">
              <ConnectionsPage />
            </Route>
            <Route path="/destinations">
              <DestinationsPage />
            </Route>
            <Route path="/webhooks">
              <WebhooksPage />
            </Route>
            <Route path="/quarantine">
              <QuarantinePage />
            </Route>
            <Route path="/access">
              <AccessPage />
            </Route>
            <Route path="/audit">
              <AuditPage />
            </Route>
            <Route path="/sources">
              <SourcesPage />
            </Route>
            <Route>
              <h1 className="hidden">Page not found</h1>
              <EmptyState title="Page not found">
                <Link href="/">Go to the overview</Link>
              </EmptyState>
            </Route>
          </Switch>
        </Shell>
      </SessionGate>
    </Router>
  )
}

/**
 * The decoded parts after the page kind. The router's own parameters leave an encoded slash or question mark encoded.
 */
function parsePathNames(): string[] {
  return location.pathname
    .split('/')
    .slice(3)
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    })
}

function Shell({ children }: { children: ReactNode }) {
  const [location, go] = useLocation()
  const [isHelpOpen, setIsHelpOpen] = useState(false)
  useShortcuts({
    '/': focusSearch,
    '?': () => setIsHelpOpen(true),
    ...Object.fromEntries(PAGES.slice(0, 9).map(([path], at) => [String(at + 1), () => go(path)])),
  })
  const isSync = location.startsWith('/syncs/')
  const section = isSync
    ? 'Overview'
    : PAGES.find(([path]) => location === path || (path !== '/' && location.startsWith(`${path}/`)))?.[1]
  const title = isSync ? (parsePathNames()[1] ?? '') : (section ?? 'Page not found')
  useEffect(() => {
    document.title = `${title} · Tidemark`
    scrollTo(0, 0)
    document.querySelector('.top nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [location, title])
  return (
    <>
      <header className="top">
        <Link href="/" className="brand" aria-label="Tidemark, overview">
          <svg viewBox="0 0 28 20" aria-hidden="true">
            <path className="brand-line" d="M2 5h24" />
            <path
              className="brand-wave"
              d="M0 14c3.500 0 3.500-2.600 7-2.600s3.500 2.600 7 2.600 3.500-2.600 7-2.600 3.500 2.600 7 2.600v6H0z"
            />
          </svg>
          Tidemark
        </Link>
        <nav aria-label="Pages">
          {PAGES.map(([path, name]) => (
            <Link key={path} href={path} aria-current={section === name ? 'page' : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <div className="top-tools">
          <StaleNotice />
          <TenantBadge />
          <ThemeSwitch />
          <button
            type="button"
            className="icon-button"
            onClick={() => setIsHelpOpen(true)}
            aria-label="Keyboard shortcuts and help"
            title="Keyboard shortcuts and help (?)"
          >
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      {isHelpOpen && <HelpDialog onClose={() => setIsHelpOpen(false)} />}
    </>
  )
}

/** Shows whether the displayed data may be out of date. */
function StaleNotice() {
  const client = useQueryClient()
  useIsFetching()
  const isStale = client
    .getQueryCache()
    .getAll()
    .some((query) => query.state.error !== null && query.state.data !== undefined && query.isActive())
  return isStale ? (
    <span className="stale" role="status">
      server unreachable, data may be out of date
    </span>
  ) : null
}

function TenantBadge() {
  const { session, signOut } = useSession()
  return (
    <span className="who">
      <span className="quiet">tenant</span> {session.tenant}
      {apiKeyStorage.get() !== null && (
        <button type="button" className="small" onClick={signOut}>
          Sign out
        </button>
      )}
    </span>
  )
}

function HelpDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="keys">
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>search on this page</dd>
        </div>
        {PAGES.slice(0, 9).map(([path, name], at) => (
          <div key={path}>
            <dt>
              <kbd>{at + 1}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>↑</kbd> <kbd>↓</kbd>
          </dt>
          <dd>move between the syncs of the list</dd>
        </div>
        <div>
          <dt>
            <kbd>←</kbd> <kbd>→</kbd>
          </dt>
          <dd>read the values of a chart</dd>
        </div>
        <div>
          <dt>
            <kbd>Tab</kbd> <kbd>Enter</kbd>
          </dt>
          <dd>move between links and open one</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>open this help</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>close the dialog</dd>
        </div>
      </dl>
      <h3>Terms</h3>
      <p>
        <b>Tidemark</b>: the time up to which the copy is complete. <b>Lag</b>: how long ago that was. <b>Cycle</b>: one
        run of a sync, from its first page to its last.
      </p>
    </Dialog>
  )
}
