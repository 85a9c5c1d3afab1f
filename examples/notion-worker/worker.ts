/**
 * An unchanged Notion worker: it lists customers every hour, reads ticket changes every five minutes and lists tickets
 * on request. `ntn workers deploy` runs it at Notion; `tidemark run` runs it here.
 */
import { RateLimitError, Worker } from '@notionhq/workers'
import * as Builder from '@notionhq/workers/builder'
import * as Schema from '@notionhq/workers/schema'

const worker = new Worker()
export default worker

const desk = worker.pacer('desk', { allowedRequests: 60, intervalMs: 1000 })

const customers = worker.database('customers', {
  type: 'managed',
  initialTitle: 'Customers',
  primaryKeyProperty: 'Customer ID',
  schema: {
    properties: {
      Name: Schema.title(),
      'Customer ID': Schema.richText(),
      Email: Schema.email(),
    },
  },
})

const tickets = worker.database('tickets', {
  type: 'managed',
  initialTitle: 'Tickets',
  primaryKeyProperty: 'Ticket ID',
  schema: {
    properties: {
      Subject: Schema.title(),
      'Ticket ID': Schema.richText(),
      Status: Schema.status({
        groups: [
          { name: 'To-do', options: [{ name: 'Open' }] },
          { name: 'Complete', options: [{ name: 'Solved' }] },
        ],
      }),
      Tags: Schema.multiSelect([]),
      Due: Schema.date(),
      Customer: Schema.relation('customers'),
    },
  },
})

type Customer = { id: string; name: string; email: string }
type Ticket = {
  id: string
  subject: string
  status: string
  tags: string[]
  due: string
  customer: string
  updated_at: string
}
type Event = { id: number; ticket: Ticket } | { id: number; deleted: string }

worker.sync('customersSync', {
  database: customers,
  mode: 'replace',
  schedule: '1h',
  execute: async () => {
    const { items } = await ask<{ items: Customer[] }>('/customers')
    return {
      changes: items.map((customer) => ({
        type: 'upsert' as const,
        key: customer.id,
        properties: {
          Name: Builder.title(customer.name),
          'Customer ID': Builder.richText(customer.id),
          Email: Builder.email(customer.email),
        },
      })),
      hasMore: false,
    }
  },
})

worker.sync('ticketsBackfill', {
  database: tickets,
  mode: 'replace',
  schedule: 'manual',
  execute: async (state: { page: number } | undefined) => {
    const page = state?.page ?? 1
    const { items, hasMore } = await ask<{ items: Ticket[]; hasMore: boolean }>(`/tickets?page=${page}`)
    return { changes: items.map(toChange), hasMore, nextState: hasMore ? { page: page + 1 } : undefined }
  },
})

worker.sync('ticketsDelta', {
  database: tickets,
  mode: 'incremental',
  schedule: '5m',
  execute: async (state: { after: number } | undefined) => {
    const { events, hasMore } = await ask<{ events: Event[]; hasMore: boolean }>(`/events?after=${state?.after ?? 0}`)
    return {
      changes: events.map((event) =>
        'deleted' in event ? { type: 'delete' as const, key: event.deleted } : toChange(event.ticket),
      ),
      hasMore,
      nextState: { after: events.at(-1)?.id ?? state?.after ?? 0 },
    }
  },
})

function toChange(ticket: Ticket) {
  return {
    type: 'upsert' as const,
    key: ticket.id,
    upstreamUpdatedAt: ticket.updated_at,
    properties: {
      Subject: Builder.title(ticket.subject),
      'Ticket ID': Builder.richText(ticket.id),
      Status: Builder.status(ticket.status),
      Tags: Builder.multiSelect(...ticket.tags),
      Due: Builder.date(ticket.due),
      Customer: [Builder.relation(ticket.customer)],
    },
  }
}

async function ask<T>(path: string): Promise<T> {
  await desk.wait()
  const response = await fetch(`${process.env.DESK_URL ?? 'http://127.0.0.1:4020'}${path}`)
  if (response.status === 429) throw new RateLimitError({ retryAfter: Number(response.headers.get('retry-after')) })
  if (!response.ok) throw new Error(`the help desk returned ${response.status}`)
  return (await response.json()) as T
}
