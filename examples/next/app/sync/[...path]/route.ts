import { tidemark } from '../../../tidemark.ts'

export const runtime = 'nodejs'
export const dynamic = 'force-dynamic'

/** The API, the console and incoming webhooks, below `/sync`. Needs an API key. */
const handle = (request: Request): Promise<Response> => tidemark.handler(request)

export { handle as GET, handle as POST, handle as PATCH, handle as DELETE, handle as OPTIONS }
