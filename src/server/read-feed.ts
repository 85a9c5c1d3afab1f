import type { Store } from '../contract/index.ts'
import { readPage, type Page, type PageRequest } from '../feed/read-page.ts'
import type { Hall } from './route.ts'

/** A page, sealed with the tenant's own secret. */
export function readFeed(hall: Hall, store: Store, request: PageRequest): Promise<Page> {
  return hall.seals.with(store, (seal) => readPage(store, seal, request, hall.ports.clock.now()))
}
