import { customers, tidemark } from '../../tidemark.ts'

export const runtime = 'nodejs'
export const dynamic = 'force-dynamic'

/** A route of your own reads the copy without a key. */
export async function GET(): Promise<Response> {
  const names: unknown[] = []
  for await (const { record } of tidemark.database(customers).rows()) names.push(record['name'])
  return Response.json(names)
}
