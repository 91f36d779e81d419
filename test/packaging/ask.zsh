# Prints what zsh offers after each line, and a full stop after that:   zsh -f ask.zsh COMPLETION LINE…
# It types into a zsh of its own, whose compadd tells what it is given instead of showing it.
begin='<<offered' end='offered>>'

if [[ $1 == inside ]]; then
  PS1= PS2=
  fpath=(${2:h} $fpath)
  autoload -Uz compinit && compinit -u -D
  compadd() {
    # Groups and descriptions, which are asked for beforehand, go into arrays.
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)* ]]; then builtin compadd "$@"; return; fi
    local -a hits
    builtin compadd -A hits "$@"
    print -rl -- $hits
    builtin compadd "$@"
  }
  report() { print -r -- $begin; zle complete-word; print -r -- $end }
  zle -N report
  bindkey '^X' report
  print ready-$((40 + 2))
  return
fi

zmodload zsh/zpty || exit
zpty shell zsh -f -i
zpty -w shell "source ${(q)0:A} inside ${(q)1:A}"
zpty -r -m shell said '*ready-42*' || exit
for line in "${@[2,-1]}"; do
  # Control-U drops the last line, control-X reports.
  zpty -n -w shell $'\x15'"$line"$'\x18'
  zpty -r -m shell said "*$begin*$end*" || exit
  said=${said#*$begin}
  print -rl -- ${(f)${said%%$end*}//$'\r'} .
done
