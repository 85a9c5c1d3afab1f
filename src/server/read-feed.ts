import type { Store } from '../contract/index.ts'
import { readFeedPage, type FeedPageResult, type FeedPageRequest } from '../feed/read-feed-page.ts'
import type { ServerContext } from './route.ts'

/** Reads a page with the tenant's cursor cipher. */
export function readFeed(context: ServerContext, store: Store, request: FeedPageRequest): Promise<FeedPageResult> {
  return context.cursorCiphers.withCipher(store, (cipher) =>
    readFeedPage(store, cipher, request, context.ports.clock.now()),
  )
}
