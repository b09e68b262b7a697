"""English function words, which have little weight in embeddings, search and answers."""

_WORDS = """
a about above across after again against all almost along already also although always am among an and another any
anybody anyone anything are around as at away back be because been before behind being below beside between both
but by can cannot could d did do does doing done down during each either else ever every everybody everyone
everything few for from further get gets give given go goes had has have having he hence her here hers herself him
himself his how however i if in indeed instead into is it its itself just ll m many me might mine more most much
must my myself near neither never nevertheless no nobody none nor not nothing now of off often on once one only
onto or other others otherwise our ours ourselves out over own per perhaps quite rather re s same she should since
so some somebody someone something sometimes still such t than that the their theirs them themselves then there
therefore these they this those though through throughout thus to together too toward towards under until up upon
us ve very via was we well were what whatever when whence whenever where whereas whereby wherein wherever whether
which while whither who whoever whole whom whose why will with within without would yet you your yours yourself
yourselves
"""

STOP_WORDS = frozenset(_WORDS.split())
