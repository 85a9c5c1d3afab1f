import { createServer } from 'node:http'

/**
 * The API of a help desk on this machine: customers, pages of tickets, and a feed of ticket events. Every eleventh
 * request gets a 429 with `retry-after: 1`.
 *
 *   node server.mjs [port]
 */
export function startDesk(port = 0) {
  const customers = ['Ada', 'Alan', 'Grace'].map((name) => ({
    id: name.toLowerCase(),
    name,
    email: `${name.toLowerCase()}@example.com`,
  }))
  const tickets = new Map()
  const events = []
  let asked = 0

  const put = (number, status) => {
    const ticket = {
      id: `T${number}`,
      subject: `Ticket ${number}`,
      status,
      tags: number % 2 === 0 ? ['urgent', 'billing'] : [],
      due: `2026-03-${String((number % 28) + 1).padStart(2, '0')}`,
      customer: customers[number % 3].id,
      updated_at: new Date().toISOString(),
    }
    tickets.set(ticket.id, ticket)
    events.push({ id: events.length + 1, ticket })
  }
  const remove = (number) => {
    tickets.delete(`T${number}`)
    events.push({ id: events.length + 1, deleted: `T${number}` })
  }
  for (let number = 1; number <= 25; number++) put(number, 'Open')

  const page = (list, from, size) => ({ items: list.slice(from, from + size), hasMore: list.length > from + size })
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://desk')
    const answer = (body, status = 200, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    if (++asked % 11 === 0) return answer({ error: 'too many requests' }, 429, { 'retry-after': '1' })
    if (pathname === '/customers') return answer({ items: customers })
    if (pathname === '/tickets')
      return answer(page([...tickets.values()], (Number(searchParams.get('page')) - 1) * 10, 10))
    if (pathname !== '/events') return answer({ error: 'not found' }, 404)
    const { items, hasMore } = page(events, Number(searchParams.get('after')), 10)
    answer({ events: items, hasMore })
  })
  return new Promise((resolve) =>
    server.listen(port, '127.0.0.1', () =>
      resolve({ url: `http://127.0.0.1:${server.address().port}`, put, remove, close: () => server.close() }),
    ),
  )
}

if (process.argv[1] === import.meta.filename) console.log((await startDesk(Number(process.argv[2] ?? 4020))).url)
