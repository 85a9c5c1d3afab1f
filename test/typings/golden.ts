// Made by `tidemark types`: changes to this file are lost when it is made again.

export type OrdersLine2 = {
  sku: string
  parts?: Array<OrdersLine2>
}

/** A record of orders, by its schema. */
export interface Orders {
  /** As the shop prints it: #1001 *\/ and so on */
  id: string
  total: number
  count?: number
  paid?: boolean | null
  status?: 'open' | 'shipped' | null
  kind?: 'order'
  'line items': Array<OrdersLine2>
  place?: [number, number]
  tags?: Record<string, string>
  note?:
    | string
    | {
        html: string
      }
  anything?: unknown
}

/** A record of people, by its schema. */
export interface People {
  name: string
  email: string | null
  age?: number
  roles: Array<'admin' | 'guest'>
}

/** A record of door-events, by what has landed so far: others may come, and any may be absent. */
export interface DoorEvents {
  door?: string | null
  open?: boolean | null
  count?: number | bigint | null
  weight?: number | null
  at?: null
  big?: bigint | null
  nested?: unknown
  mixed?: number | bigint | string | null
  ''?: string | null
  'a-b'?: string | null
}

/** A record of orders.line: nothing is known of it yet. */
export type OrdersLine = Record<string, unknown>

/** A record of 123: nothing is known of it yet. */
export type _123 = Record<string, unknown>

/** Every database, for `createClient<Databases>(…)` of tidemark/client. */
export interface Databases {
  orders: Orders
  people: People
  'door-events': DoorEvents
  'orders.line': OrdersLine
  '123': _123
}
