import { openHarness } from '../stores/sqlite-harness.ts'
import { describeFeed } from './feed-cases.ts'

describeFeed('SQLite', openHarness)
