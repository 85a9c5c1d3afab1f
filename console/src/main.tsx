import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api.ts'
import { App } from './app.tsx'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Who is refused, or asks for what is not there, learns nothing by asking again.
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status < 500 && error.status !== 429),
      refetchOnWindowFocus: true, staleTime: 1_000,
    },
  },
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
