import type { Store } from '../contract/index.ts'
import { readFeedPage, type FeedPageResult, type FeedPageRequest } from '../feed/read-feed-page.ts'
import type { ServerContext } from './route.ts'

/** Reads a page with the tenant's cursor cipher. */
export function readFeed(hall: ServerContext, store: Store, request: FeedPageRequest): Promise<FeedPageResult> {
  return hall.cursorCiphers.withCipher(store, (seal) => readFeedPage(store, seal, request, hall.ports.clock.now()))
}
