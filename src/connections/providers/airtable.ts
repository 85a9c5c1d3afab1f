import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'airtable',
  title: 'Airtable',
  documentation: 'https://airtable.com/developers/web/api/oauth-reference',
  source: 'airtable',
  oauth: {
    authorizeUrl: 'https://airtable.com/oauth2/v1/authorize',
    tokenUrl: 'https://airtable.com/oauth2/v1/token',
    scopes: ['data.records:read', 'schema.bases:read', 'user.email:read'],
    pkce: 'required',
    clientAuth: 'basic',
    refreshTokens: 'rotating',
    expiry: 'stated',
  },
  form: {
    steps: [
      'In Airtable, open the Builder hub, then Personal access tokens.',
      'Create a token with the scopes data.records:read, schema.bases:read and user.email:read, and add the bases that you want to sync.',
      'Copy the token. It begins with pat.',
    ],
    fields: { token: { label: 'Personal access token', example: 'pat…', isSecret: true } },
    auth: { kind: 'header', header: 'authorization', field: 'token', prefix: 'Bearer ' },
  },
  account: { url: 'https://api.airtable.com/v0/meta/whoami', id: 'id', label: 'email' },
})
