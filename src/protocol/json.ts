/** Plain JSON data: what records, tool inputs and tool outputs are made of. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** An object of JSON. */
export type JsonObject = { readonly [key: string]: Json };
