/** Tools for connector authors: HTTP requests, authentication, token storage and serialized records. */
export { anonymous, apiKey, basic, bearer } from '../sources/kit/auth.ts'
export type { Auth, Credentials, SecretSource } from '../sources/kit/auth.ts'
export { createHttpClient } from '../sources/kit/http-client.ts'
export type {
  HttpResponse,
  HttpClient,
  HttpClientOptions,
  HttpLimits,
  Query,
  RequestOptions,
} from '../sources/kit/http-client.ts'
export { isObject, classifyGraphqlResponse } from '../sources/kit/classify-response.ts'
export type { ResponseClassifier, ResponseClass } from '../sources/kit/classify-response.ts'
export { parseNextLink } from '../sources/kit/link-header.ts'
export { clientCredentials, refreshToken } from '../sources/kit/oauth.ts'
export { session } from '../sources/kit/session-auth.ts'
export type { SessionOptions } from '../sources/kit/session-auth.ts'
export { path, encodePathSegment } from '../sources/kit/origin.ts'
export { Secret } from '../redaction/secret.ts'
export { serializedUpsert } from '../values/serialized-upsert.ts'
export type { SerializedRecord, SerializedShape } from '../values/serialized-upsert.ts'
export { MemoryTokenStore } from '../sources/kit/token-store.ts'
export type { StoredTokens, Tokens, TokenStore } from '../sources/kit/token-store.ts'
export { fileTokens } from './file-token-store.ts'
export type { FileTokensOptions } from './file-token-store.ts'
