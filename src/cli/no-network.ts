/** What a command for all networks says where there is none. */
export const noNetwork = 'no network is joined; "cpn join" joins one';
