import { tidemark } from '../../tidemark.ts'

export const runtime = 'nodejs'
export const maxDuration = 60

/** For a host without long-lived processes: a cron trigger with the secret of the project runs what is due. */
export async function GET(request: Request): Promise<Response> {
  if (request.headers.get('authorization') !== `Bearer ${process.env['CRON_SECRET']}`)
    return new Response(null, { status: 401 })
  const { cycles, isComplete } = await tidemark.tick({ budgetMs: 50_000 })
  return Response.json({ cycles: cycles.length, isComplete })
}
