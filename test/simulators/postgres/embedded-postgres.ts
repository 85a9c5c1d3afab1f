import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'

/** The PostgreSQL that `realOrEmbeddedPostgres` runs in a folder, seen from outside. */
export class EmbeddedPostgres {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  get url(): string {
    return readFileSync(join(this.folder, 'url'), 'utf8').trim()
  }

  /** Where its data is: elsewhere when it may not go where the folder is. */
  get home(): string {
    const note = join(this.folder, 'elsewhere')
    return existsSync(note) ? readFileSync(note, 'utf8') : this.folder
  }

  /** Of the server's first process; null when none is alive. */
  get pid(): number | null {
    try {
      const pid = Number(readFileSync(join(this.home, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
      process.kill(pid, 0)
      return pid
    } catch {
      return null
    }
  }

  async gone(): Promise<void> {
    await vi.waitFor(() => expect(this.pid).toBeNull(), { timeout: 30_000, interval: 100 })
  }

  /** Ends it, whoever still reads from it, and removes its files. */
  async remove(): Promise<void> {
    const { pid, home, folder } = this
    if (pid !== null) process.kill(pid, 'SIGQUIT')
    await this.gone()
    for (const path of [home, folder]) rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  }
}
