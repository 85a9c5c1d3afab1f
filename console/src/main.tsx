import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api.ts'
import { App } from './app.tsx'

const client = new QueryClient({
  // The key has ended: the session is loaded again.
  queryCache: new QueryCache({
    onError: (error, { queryKey }) =>
      void (
        error instanceof ApiError &&
        error.status === 401 &&
        queryKey[0] !== 'session' &&
        client.invalidateQueries({ queryKey: ['session'] })
      ),
  }),
  defaultOptions: {
    queries: {
      // Client errors are not retried.
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status < 500 && error.status !== 429),
      refetchOnWindowFocus: true,
      staleTime: 1_000,
    },
  },
})

const root = document.getElementById('root')
if (root === null) throw new Error('The page has no element #root')

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
