import { Worker } from 'tidemark'
import { kraken } from 'tidemark/sources/kraken'
import { realOrSimulated } from 'tidemark/testing'

// Without KRAKEN_SECRET in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('kraken', { unless: 'KRAKEN_SECRET', since: '{{now}}' })
const account = kraken({ apiKey: 'KRAKEN_KEY', apiSecret: 'KRAKEN_SECRET' })

const worker = new Worker({ name: '{{name}}' })
worker.sync('ledgers', { database: worker.database('ledgers'), schedule: '5m', ...simulated(account.ledgers) })
worker.sync('trades', { database: worker.database('trades'), schedule: '5m', ...simulated(account.trades) })

export default worker
