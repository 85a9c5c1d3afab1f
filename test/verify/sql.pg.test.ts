import { describeVerifiedTables } from './sql-cases.ts'

describeVerifiedTables('postgres')
