import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { files, type FilesOptions } from '../../../src/sources/files/source.ts'
import { DatabaseFixture } from '../sql/database-fixture.ts'

/** A folder that others write into, and a sync that follows it into a store in memory. */
export class FilesFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'tidemark-files-'))
  readonly stage: DatabaseFixture

  private constructor(stage: DatabaseFixture) {
    this.stage = stage
  }

  static async open(options: Partial<FilesOptions> = {}): Promise<FilesFixture> {
    const box = new FilesFixture(await DatabaseFixture.open())
    const { mode, execute, limits } = files({ folder: box.folder, settleMs: 0, ...options })
    box.stage.sync('rows', mode, execute, limits)
    return box
  }

  /** As those do who write well: beside it, then renamed. */
  put(path: string, content: string | Uint8Array): void {
    const full = join(this.folder, path)
    mkdirSync(dirname(full), { recursive: true })
    writeFileSync(`${full}.tmp`, content)
    renameSync(`${full}.tmp`, full)
  }

  remove(path: string): void {
    rmSync(join(this.folder, path))
  }

  async counts(): Promise<object> {
    const { counts } = await this.stage.complete('rows')
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
  }

  rows(): Promise<Record<string, any>> {
    return this.stage.rows('rows')
  }

  async close(): Promise<void> {
    await this.stage.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
