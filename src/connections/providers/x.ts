import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'x',
  title: 'X',
  documentation: 'https://docs.x.com/fundamentals/authentication/oauth-2-0/user-access-token',
  source: 'bookmarks',
  oauth: {
    authorizeUrl: 'https://x.com/i/oauth2/authorize',
    tokenUrl: 'https://api.x.com/2/oauth2/token',
    // Without offline.access, X returns no refresh token.
    scopes: ['bookmark.read', 'tweet.read', 'users.read', 'offline.access'],
    pkce: 'required',
    clientAuth: 'basic',
    refreshTokens: 'rotating',
    expiry: 'stated',
    revocation: {
      method: 'POST',
      url: 'https://api.x.com/2/oauth2/revoke',
      fields: { token: '{refresh_token}', token_type_hint: 'refresh_token' },
    },
  },
  account: { url: 'https://api.x.com/2/users/me', id: 'data.id', label: 'data.username' },
})
