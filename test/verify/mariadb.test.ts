import { describeVerifiedTables } from './sql-cases.ts'

describeVerifiedTables('mariadb')
