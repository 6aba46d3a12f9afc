/** Plain JSON data: what records, tool inputs and tool outputs are made of. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };
