/** Next.js calls it once when the server starts. Leave it out on a host without long-lived processes: see `app/cron/`. */
export async function register(): Promise<void> {
  if (process.env['NEXT_RUNTIME'] !== 'nodejs') return
  const { tidemark } = await import('./tidemark.ts')
  await tidemark.start()
}
