// The options of OAuth, and what a login leaves behind.

/** How a client logs in at a server that wants OAuth. Over HTTP. */
export interface OAuthOptions {
  /**
   * Shows the user the page of the authorization server, and returns the address that the page redirected the browser to. Default:
   * none, so only saved tokens and the other values of `grant` are used.
   */
  onAuthorize?: OnAuthorize
  /**
   * Where the authorization server redirects the user: an https address, or one on this machine. A function is called for each
   * login. Default: none, but `onAuthorize` requires it.
   */
  redirectUrl?: string | URL | (() => string | URL | Promise<string | URL>)
  /**
   * The https address of this client's metadata document. It is the client id at every authorization server that supports such
   * documents. Default: none.
   */
  clientMetadataUrl?: string
  /** A client that is registered at the authorization server already. Default: the client registers itself. */
  client?: OAuthClient
  /**
   * How to get a token: 'authorization_code' asks the user, 'client_credentials' authenticates the client itself, and an
   * `EnterpriseGrant` exchanges an ID token of the user's employer. Default 'authorization_code'.
   */
  grant?: 'authorization_code' | 'client_credentials' | EnterpriseGrant
  /** Scopes to request in addition to those that the server asks for. Default: none. */
  scopes?: readonly string[]
  /** Keeps the tokens. One store belongs to one user. Default: in memory, until the client is closed. */
  store?: TokenStore
}

/** Returns the address that the browser was redirected to, with its query. */
export type OnAuthorize = (page: URL, context: AuthorizeContext) => string | URL | Promise<string | URL>

/** What `authorize` gets beside the address of the page: who asks for which scopes, and for which server. */
export interface AuthorizeContext {
  /** The authorization server that the page belongs to. Show it to the user. */
  readonly issuer: string
  /** The server that the token is for. */
  readonly server: string
  /** The scopes that are requested. */
  readonly scopes: readonly string[]
  /** The page redirects to this address. */
  readonly redirectUrl: string
  /** Aborted when no call waits for the login any more. */
  readonly signal: AbortSignal
}

/** A client that is registered at an authorization server. */
export interface OAuthClient {
  /** The client id. */
  id: string
  /** Default: none, which makes it a public client. */
  secret?: string
  /** Signs assertions in place of a secret (`private_key_jwt`). Default: none. */
  key?: SigningKey | { key: SigningKey; kid: string }
  /** The authorization server that knows this client. No other one gets its id and secret. Default: the one that the server names. */
  issuer?: string
}

/** A private `CryptoKey` of Web Crypto. */
export interface SigningKey {
  /** `private`. */
  readonly type: string
  /** The algorithm that the key is for. */
  readonly algorithm: { readonly name: string }
  /** Whether the key can be exported. */
  readonly extractable: boolean
  /** What the key may be used for. It must contain `sign`. */
  readonly usages: readonly string[]
}

/** Enterprise-managed authorization: an identity provider decides which servers its users may use. */
export interface EnterpriseGrant {
  /** Returns an ID token of the user, from the login at the identity provider. */
  idToken: () => string | Promise<string>
  /** The issuer of the ID token. */
  idpIssuer: string
  /** This client as the identity provider knows it. */
  idpClient: Omit<OAuthClient, 'issuer'>
}

/** Keeps logins by the address of their server. What it keeps is secret. A `Map` is one; its methods may also return promises. */
export interface TokenStore {
  /** Returns the login for this server, if there is one. */
  get(server: string): SavedLogin | undefined | Promise<SavedLogin | undefined>
  /** Keeps the login for this server, in place of an earlier one. */
  set(server: string, login: SavedLogin): unknown
  /** Removes the login for this server. */
  delete(server: string): unknown
}

/** What a login left behind, as JSON. */
export interface SavedLogin {
  /** The authorization server. Nothing of this is sent to another one. */
  readonly issuer: string
  /** The client that the tokens belong to. */
  readonly client?: SavedClient
  /** The token that is sent to the server. */
  readonly accessToken?: string
  /** Gets the next access token without the user. */
  readonly refreshToken?: string
  /** When the access token expires, in milliseconds since 1970. */
  readonly expiresAt?: number
  /** What was requested, over all logins at this authorization server. */
  readonly requested?: readonly string[]
  /** What the authorization server granted. */
  readonly granted?: readonly string[]
}

/** The client id that the tokens belong to. */
export interface SavedClient {
  /** The client id. */
  readonly id: string
  /** The secret of a confidential client. */
  readonly secret?: string
  /** How the client authenticates at the token endpoint. */
  readonly authMethod?: string
  /** A registration is used again only with the same address. */
  readonly redirectUrl?: string
  /** When the secret expires, in milliseconds since 1970. */
  readonly expiresAt?: number
}
