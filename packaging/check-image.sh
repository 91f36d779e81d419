# Run in a container of our image by scripts/package, with the version of the program: that and the tools are there, and a control plane
# answers on loopback.
found=$(cpn --version)
[ "$found" = "$1" ] || { echo "it holds cpn $found, not $1"; exit 1; }
for tool in wg ip nft ping wireguard-go; do command -v "$tool" >/dev/null || { echo "no $tool"; exit 1; }; done
for file in /etc/hostname /etc/resolv.conf; do [ -e "$file" ] || { echo "no $file"; exit 1; }; done

work=$(mktemp -d)
printf 'a long enough test password' >"$work/password"
# A port that was free a moment ago.
node=/usr/lib/cpn/node
port=$("$node" -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
cpn control-plane serve --listen "127.0.0.1:$port" --data "$work/data" --owner-email owner@example.net \
  --owner-password-file "$work/password" >"$work/log" 2>&1 &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
"$node" -e '
  const ask = async (left) => {
    const reply = await fetch(process.argv[1]).catch(() => undefined);
    if (reply?.status === 200) return;
    if (left === 0) throw new Error(`/healthz: ${reply?.status ?? "no answer"}`);
    await new Promise((done) => setTimeout(done, 100));
    return ask(left - 1);
  };
  ask(200);
' "http://127.0.0.1:$port/healthz" || { cat "$work/log"; exit 1; }
