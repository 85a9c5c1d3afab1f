import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { describe, inject } from 'vitest'
import { describePauses } from './pause-cases.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('on PostgreSQL', () =>
  describePauses(async () => {
    const name = `pauses_${randomUUID().replaceAll('-', '')}`
    const admin = new pg.Client(server)
    await admin.connect()
    await admin.query(`create database ${name}`)
    await admin.end()
    const url = new URL(server)
    url.pathname = `/${name}`
    return { TIDEMARK_STORE: url.href, TIDEMARK_KEY: randomBytes(32).toString('base64') }
  }),
)
